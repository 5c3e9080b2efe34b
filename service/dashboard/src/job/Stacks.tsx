import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";

import { useDumpStacks, useStacks } from "../api/jobs";
import { useMayChange } from "../api/session";
import type { Job, ProcessStack, Stacks as Dump } from "../api/types";
import { sentence } from "../lib/format";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Time } from "../ui/Time";

/** What every rank did when it was last asked; shown for a run that hangs, and where stacks were taken. */
export function Stacks({ job, hangs }: { job: Job; hangs: boolean }) {
  const stacks = useStacks(job).data ?? [];
  const dump = useDumpStacks();
  const mine = useMayChange(job);
  if (stacks.length === 0 && !hangs) return null;
  const serial = stacks[0]?.serial;
  const newest = stacks.filter((one) => one.serial === serial);
  const [first] = newest;
  const tools = (
    <>
      {first !== undefined && (
        <span className="faint"><Trans><Time at={first.at} />, attempt {{ attempt: first.attempt }}</Trans></span>
      )}
      {mine && job.state === "running" && (
        <button type="button" className="button small" disabled={dump.isPending} onClick={() => dump.mutate(job.id)}>
          <Trans>Dump now</Trans>
        </button>
      )}
    </>
  );
  return (
    <Panel title={t`Stacks`} className={hangs ? "stacks hanging" : "stacks"} tools={tools}>
      <Notice error={dump.error} />
      {hangs && (
        <p className="stacks-hangs"><Trans>The run makes no step any more: it is taken for hanging.</Trans></p>
      )}
      {first === undefined && <p className="soft pad"><Trans>Its stacks are on the way.</Trans></p>}
      {newest.map((one) => <OfNode key={one.node_rank} dump={one} named={newest.length > 1} />)}
    </Panel>
  );
}

function OfNode({ dump, named }: { dump: Dump; named: boolean }) {
  return (
    <div className="stacks-node">
      <p>{named && <b>{dump.node}: </b>}{sentence(dump.summary)}</p>
      <ul>{dump.processes.map((one) => <li key={one.pid}><Process process={one} /></li>)}</ul>
      {dump.left_out > 0 && (
        <p className="faint">
          <Plural value={{ count: dump.left_out }} one="# process left out." other="# processes left out." />
        </p>
      )}
    </div>
  );
}

function Process({ process }: { process: ProcessStack }) {
  const { pid, rank, main, command, error, threads } = process;
  return (
    <details>
      <summary>
        <b><Trans>rank {rank}</Trans></b>
        <span className="stack-doing" data-waits={process.collective != null || undefined}>{doing(process)}</span>
        {process.place != null && <code className="stack-place">{process.place}</code>}
        <span className="faint">{main ? `pid ${pid}` : t`pid ${pid}, helper`}</span>
      </summary>
      <code className="stack-command">{command}</code>
      {error != null && <p className="notice">{error}</p>}
      {threads.map((thread, index) => (
        <section key={index} className="stack-thread">
          <h3>{thread.name ?? (index === 0 ? t`main thread` : t`thread ${{ number: index + 1 }}`)}</h3>
          <ol tabIndex={0} aria-label={t`Frames, the innermost first`}>
            {thread.frames.map((frame, place) => (
              <li key={place} data-native={frame.native || undefined}>
                <b>{frame.function}</b> <span>{frame.line > 0 ? `${frame.file}:${frame.line}` : frame.file}</span>
              </li>
            ))}
          </ol>
        </section>
      ))}
    </details>
  );
}

function doing({ error, collective, doing: work }: ProcessStack): string {
  if (error != null) return t`cannot be read`;
  if (collective != null) return t`waits in ${collective}`;
  return work ?? t`native code`;
}
