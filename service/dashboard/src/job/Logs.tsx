import { useState } from "react";

import { useLogStreams } from "../api/jobs";
import type { Job, LogStream } from "../api/types";
import { bytes } from "../lib/format";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { LogView } from "./LogView";

/** The log of a rank; by default that of rank 0 of the newest attempt. */
export function Logs({ job }: { job: Job }) {
  const streams = useLogStreams(job).data ?? [];
  const [chosen, setChosen] = useState<{ attempt?: number; rank?: number }>({});
  const attempts = [...new Set(streams.map((stream) => stream.attempt))].sort((a, b) => a - b);
  const attempt = chosen.attempt ?? attempts.at(-1);
  const here = streams.filter((stream) => stream.attempt === attempt).toSorted(byRank);
  const stream = here.find((one) => one.rank === chosen.rank) ?? here[0];
  const tools = stream !== undefined && (
    <>
      {attempts.length > 1 && (
        <Segments
          label="Attempt"
          options={attempts.map((number) => ({ key: String(number), label: `Attempt ${number}` }))}
          value={String(attempt)}
          onChange={(key) => setChosen({ ...chosen, attempt: Number(key) })}
        />
      )}
      <Segments
        label="Rank"
        options={here.map(({ rank }) => ({ key: String(rank), label: nameOf(rank) }))}
        value={String(stream.rank)}
        onChange={(key) => setChosen({ ...chosen, rank: Number(key) })}
      />
    </>
  );
  return (
    <Panel title="Log" tools={tools}>
      {stream === undefined
        ? <p className="soft pad">No output yet.</p>
        : <Shown key={`${stream.attempt} ${stream.rank}`} job={job.id} stream={stream} />}
    </Panel>
  );
}

function Shown({ job, stream }: { job: string; stream: LogStream }) {
  const { attempt, rank, dropped_bytes: dropped } = stream;
  return (
    <>
      {dropped > 0 && <p className="notice">{bytes(dropped)} are missing: the log limit or a full disk dropped them.</p>}
      <LogView source={{ job, attempt, rank }} />
    </>
  );
}

/** -1 is the launcher, -2 that of the second node. */
function nameOf(rank: number): string {
  if (rank >= 0) return `rank ${rank}`;
  return rank === -1 ? "launcher" : `launcher, node ${-rank}`;
}

/** Ranks in order, the launchers' own logs last. */
function byRank(a: LogStream, b: LogStream): number {
  return Number(a.rank < 0) - Number(b.rank < 0) || Math.abs(a.rank) - Math.abs(b.rank);
}
