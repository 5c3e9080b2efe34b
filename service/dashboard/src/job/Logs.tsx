import "../styles/log.css";

import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMemo, useRef, useState } from "react";

import { useLogStreams } from "../api/jobs";
import { useLogSearch } from "../api/logs";
import type { Job, LogStream } from "../api/types";
import { plain } from "../lib/ansi";
import { bytes, number } from "../lib/format";
import { type LogDocument, placeOf } from "../lib/logDocument";
import { type Found, MOST_MATCHES, READING } from "../lib/logSearch";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { useSettled } from "../ui/useSettled";
import { LogSearchField } from "./LogSearchField";
import { type LogHandle, LogView } from "./LogView";
import { useLogDocument } from "./useLogDocument";

/** Instead of a rank: all of them, by time. */
const ALL = "all";
const SETTLE_MS = 300;
/** Lines around each that is found. */
const CONTEXT = 2;

/** The log of a rank, or of all; by default that of rank 0 of the newest attempt. */
export function Logs({ job }: { job: Job }) {
  const streams = useLogStreams(job).data ?? [];
  const [chosen, setChosen] = useState<{ attempt?: number; rank?: number | typeof ALL }>({});
  const attempts = [...new Set(streams.map((stream) => stream.attempt))].sort((a, b) => a - b);
  const attempt = chosen.attempt ?? attempts.at(-1);
  const here = streams.filter((stream) => stream.attempt === attempt).toSorted(byRank);
  const stream = here.find((one) => one.rank === chosen.rank) ?? here[0];
  const all = chosen.rank === ALL && here.length > 1;
  const tools = stream !== undefined && (
    <>
      {attempts.length > 1 && (
        <Segments
          label={t`Attempt`}
          options={attempts.map((number) => ({ key: String(number), label: t`Attempt ${number}` }))}
          value={String(attempt)}
          onChange={(key) => setChosen({ ...chosen, attempt: Number(key) })}
        />
      )}
      <Segments
        label={t`Rank`}
        options={[
          ...(here.length > 1 ? [{ key: ALL, label: t`all by time` }] : []),
          ...here.map(({ rank }) => ({ key: String(rank), label: nameOf(rank) })),
        ]}
        value={all ? ALL : String(stream.rank)}
        onChange={(key) => setChosen({ ...chosen, rank: key === ALL ? ALL : Number(key) })}
      />
    </>
  );
  return (
    <Panel title={t`Log`} tools={tools}>
      {stream === undefined
        ? <p className="soft pad"><Trans>No output yet.</Trans></p>
        : (
            <Shown
              key={`${stream.attempt} ${all ? ALL : stream.rank}`}
              job={job.id}
              streams={all ? here : [stream]}
            />
          )}
    </Panel>
  );
}

function Shown({ job, streams }: { job: string; streams: readonly LogStream[] }) {
  const attempt = streams[0]?.attempt ?? 1;
  const ranks = streams.map(({ rank }) => rank).join(",");
  const source = useMemo(() => ({ job, attempt, ranks: ranks.split(",").map(Number) }), [job, attempt, ranks]);
  const { document, live, ready, error } = useLogDocument(source);
  const [words, setWords] = useState("");
  const searched = useSettled(words.trim(), SETTLE_MS) ?? "";
  const hits = useLogSearch({ ...source, words: searched, context: CONTEXT, grown: document });
  const errors = useLogSearch({ ...source, words: ready ? null : "", context: 0, grown: document });
  const [timestamps, setTimestamps] = useState(false);
  const [following, setFollowing] = useState(true);
  const [current, setCurrent] = useState<number | null>(null);
  const view = useRef<LogHandle>(null);
  const show = (line: number) => {
    setCurrent(line);
    view.current?.show(line);
  };
  const dropped = streams.reduce((sum, stream) => sum + stream.dropped_bytes, 0);
  return (
    <>
      {dropped > 0 && (
        <p className="notice">
          <Trans>{{ size: bytes(dropped) }} are missing: the log limit or a full disk dropped them.</Trans>
        </p>
      )}
      <Notice error={error} />
      <div className="log-tools">
        <LogSearchField
          words={words}
          onWords={setWords}
          found={words.trim() === searched ? hits : READING}
          document={document}
          onShow={show}
        />
        <GoTo lines={document.lines} onShow={show} />
        <label className="log-toggle">
          <input type="checkbox" checked={timestamps} onChange={({ target }) => setTimestamps(target.checked)} />{" "}
          <Trans>Times</Trans>
        </label>
        {streams.map(({ rank }) => (
          <a key={rank} className="button small" href={fileOf(job, attempt, rank)} download>
            {streams.length > 1 ? t`Download ${{ log: nameOf(rank) }}` : t`Download`}
          </a>
        ))}
      </div>
      <Results found={hits} words={searched} document={document} current={current} onShow={show} />
      <LogView
        source={source}
        document={document}
        words={searched}
        errors={errors}
        hits={hits}
        timestamps={timestamps}
        current={current}
        handle={view}
        onFollowing={setFollowing}
      />
      <div className="log-foot">
        <span className="faint">
          {stateOf(live ? (following ? t`following` : t`paused`) : t`complete`, ready ? document.lines : null)}
        </span>
        <Errors found={errors} document={document} current={current} onShow={show} />
        <button type="button" className="button small" onClick={() => show(0)}>
          <Trans>Jump to start</Trans>
        </button>
        {!following && (
          <button type="button" className="button small" onClick={() => view.current?.end()}>
            <Trans>Jump to end</Trans>
          </button>
        )}
      </div>
    </>
  );
}

function stateOf(state: string, lines: number | null): string {
  return lines === null ? state : plural(lines, { one: `${state}, # line`, other: `${state}, # lines` });
}

function GoTo({ lines, onShow }: { lines: number; onShow: (line: number) => void }) {
  const [text, setText] = useState("");
  return (
    <form
      className="log-goto"
      onSubmit={(submit) => {
        submit.preventDefault();
        const line = Number(text.replaceAll(/\D/g, ""));
        if (line > 0) onShow(Math.min(line, lines) - 1);
      }}
    >
      <input
        inputMode="numeric"
        aria-label={t`Go to line`}
        placeholder={t`Line`}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
    </form>
  );
}

interface ResultsProps {
  found: Found;
  words: string;
  document: LogDocument;
  current: number | null;
  onShow: (line: number) => void;
}

/** Lines that were found, each with those around it. */
function Results({ found, words, document, current, onShow }: ResultsProps) {
  if (words === "" || found.matches.length === 0) return null;
  return (
    <ol className="log-results" aria-label={t`Lines found`} tabIndex={0}>
      {found.matches.slice(0, 100).map(({ rank, match }) => {
        const line = placeOf(document, rank, match.line);
        return (
          <li key={`${rank} ${match.offset}`} data-current={(line !== null && line === current) || undefined}>
            <button type="button" disabled={line === null} onClick={() => line !== null && onShow(line)}>
              <span>
                {[...match.before, match.text, ...match.after].map((text, at) => (
                  <span key={at} className={at === match.before.length ? "log-found" : "faint"}>
                    <span className="log-number">{match.line - match.before.length + at + 1}</span>{plain(text)}
                  </span>
                ))}
              </span>
            </button>
          </li>
        );
      })}
      {found.count > 100 && (
        <li className="faint pad">{walkedThrough(found.count)}</li>
      )}
    </ol>
  );
}

function walkedThrough(found: number): string {
  const [count, marked] = [number(found), number(MOST_MATCHES)];
  return found > MOST_MATCHES
    ? t`The first 100 of ${count}; marks are at the first ${marked}. Enter walks through them.`
    : t`The first 100 of ${count}; Enter walks through them.`;
}

/** How many lines tell of errors, and the way to the next. */
function Errors({ found, document, current, onShow }: Omit<ResultsProps, "words">) {
  if (found.count === 0) return null;
  const next = () => {
    const lines = found.matches.flatMap(({ rank, match }) => placeOf(document, rank, match.line) ?? []);
    lines.sort((one, other) => one - other);
    const line = lines.find((one) => one > (current ?? -1)) ?? lines[0];
    if (line !== undefined) onShow(line);
  };
  return (
    <button type="button" className="button small log-errors" onClick={next}>
      {plural({ count: found.count }, { one: "# line with errors", other: "# lines with errors" })}
    </button>
  );
}

function fileOf(job: string, attempt: number, rank: number): string {
  return `/api/v1/jobs/${job}/logs/file?attempt=${attempt}&rank=${rank}`;
}

/** -1 is the launcher, -2 that of the second node. */
function nameOf(rank: number): string {
  if (rank >= 0) return t`rank ${rank}`;
  return rank === -1 ? t`launcher` : t`launcher, node ${{ node: -rank }}`;
}

/** Ranks in order, the launchers' own logs last. */
function byRank(a: LogStream, b: LogStream): number {
  return Number(a.rank < 0) - Number(b.rank < 0) || Math.abs(a.rank) - Math.abs(b.rank);
}
