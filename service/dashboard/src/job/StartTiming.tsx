import { useStarts } from "../api/jobs";
import type { Job, StartTiming as Start } from "../api/types";
import { milliseconds } from "../lib/time";
import { Panel } from "../ui/Panel";

/** How the start of the newest attempt went: each stage where it lay in the whole. */
export function StartTiming({ job }: { job: Job }) {
  const start = useStarts(job).data?.at(-1);
  if (start === undefined || start.stages.length === 0) return null;
  const whole = ended(start);
  return (
    <Panel title="Start" tools={<span className="faint">{milliseconds(whole)}{how(start)}</span>}>
      <ol className="stages">
        {start.stages.map((stage) => (
          <li key={stage.name}>
            <span className="stage-name">{stage.name}</span>
            <span className="stage-line" aria-hidden="true">
              <span
                className="stage-bar"
                data-by={BY[stage.name] ?? "job"}
                style={{
                  left: `min(${(100 * stage.at_ms) / whole}%, 100% - 2px)`,
                  width: `${(100 * stage.ms) / whole}%`,
                }}
              />
            </span>
            <span className="stage-time">{milliseconds(stage.ms)}</span>
            <span className="stage-share">{Math.round((100 * stage.ms) / whole)} %</span>
          </li>
        ))}
      </ol>
      {start.cold_reason != null && <p className="stages-note soft">Cold start: {start.cold_reason}.</p>}
      {skewed(start) && (
        <p className="stages-note faint">
          The node&apos;s clock is off by {milliseconds(Math.abs(start.clock_skew_ms ?? 0))}
          {" "}(± {milliseconds(start.clock_skew_error_ms ?? 0)}), which is taken off here.
        </p>
      )}
    </Panel>
  );
}

/** Whose time a stage is: the service's, the node's; else the job's own. */
const BY: Record<string, "service" | "node"> = {
  request: "service", queue: "service", scheduling: "service", publishing: "service",
  delivery: "node", launch: "node", claim: "node", preparation: "node", shim: "node", fork: "node",
};

function ended(start: Start): number {
  const last = start.stages.at(-1);
  return last === undefined ? 0 : Math.max(last.at_ms + last.ms, 0.001);
}

function how(start: Start): string {
  return start.warm == null ? "" : start.warm ? ", warm start" : ", cold start";
}

const skewed = (start: Start) => start.clock_skew_ms != null && start.clock_skew_ms !== 0;
