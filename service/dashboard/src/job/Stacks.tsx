import { useDumpStacks, useStacks } from "../api/jobs";
import { useMayChange } from "../api/session";
import type { Job, ProcessStack, Stacks as Dump } from "../api/types";
import { plural, sentence } from "../lib/format";
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
      {first !== undefined && <span className="faint"><Time at={first.at} />, attempt {first.attempt}</span>}
      {mine && job.state === "running" && (
        <button type="button" className="button small" disabled={dump.isPending} onClick={() => dump.mutate(job.id)}>
          Dump now
        </button>
      )}
    </>
  );
  return (
    <Panel title="Stacks" className={hangs ? "stacks hanging" : "stacks"} tools={tools}>
      <Notice error={dump.error} />
      {hangs && <p className="stacks-hangs">The run makes no step any more: it is taken for hanging.</p>}
      {first === undefined && <p className="soft pad">Its stacks are on the way.</p>}
      {newest.map((one) => <OfNode key={one.node_rank} dump={one} named={newest.length > 1} />)}
    </Panel>
  );
}

function OfNode({ dump, named }: { dump: Dump; named: boolean }) {
  return (
    <div className="stacks-node">
      <p>{named && <b>{dump.node}: </b>}{sentence(dump.summary)}</p>
      <ul>{dump.processes.map((one) => <li key={one.pid}><Process process={one} /></li>)}</ul>
      {dump.left_out > 0 && <p className="faint">{plural(dump.left_out, "process")} left out.</p>}
    </div>
  );
}

function Process({ process }: { process: ProcessStack }) {
  const { pid, rank, main, command, error, threads } = process;
  return (
    <details>
      <summary>
        <b>rank {rank}</b>
        <span className="stack-doing" data-waits={process.collective != null || undefined}>{doing(process)}</span>
        {process.place != null && <code className="stack-place">{process.place}</code>}
        <span className="faint">{main ? `pid ${pid}` : `pid ${pid}, helper`}</span>
      </summary>
      <code className="stack-command">{command}</code>
      {error != null && <p className="notice">{error}</p>}
      {threads.map((thread, index) => (
        <section key={index} className="stack-thread">
          <h3>{thread.name ?? (index === 0 ? "main thread" : `thread ${index + 1}`)}</h3>
          <ol tabIndex={0} aria-label="Frames, the innermost first">
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
  if (error != null) return "cannot be read";
  if (collective != null) return `waits in ${collective}`;
  return work ?? "native code";
}
