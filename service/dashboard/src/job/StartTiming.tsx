import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useStarts } from "../api/jobs";
import type { Job, StartTiming as Start } from "../api/types";
import { stageLabel } from "../lib/stages";
import { milliseconds } from "../lib/time";
import { Panel } from "../ui/Panel";

/** How the start of the newest attempt went: each stage where it lay in the whole. */
export function StartTiming({ job }: { job: Job }) {
  const start = useStarts(job).data?.at(-1);
  if (start === undefined || start.stages.length === 0) return null;
  const whole = ended(start);
  return (
    <Panel title={t`Start`} tools={<span className="faint">{how(start, milliseconds(whole))}</span>}>
      <ol className="stages">
        {start.stages.map((stage) => (
          <li key={stage.name}>
            <span className="stage-name">{stageLabel(stage.name)}</span>
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
      {start.cold_reason != null && (
        <p className="stages-note soft"><Trans>Cold start: {{ reason: start.cold_reason }}.</Trans></p>
      )}
      {skewed(start) && (
        <p className="stages-note faint">
          <Trans>
            The node&apos;s clock is off by {{ skew: milliseconds(Math.abs(start.clock_skew_ms ?? 0)) }}
            {" "}(± {{ error: milliseconds(start.clock_skew_error_ms ?? 0) }}), which is taken off here.
          </Trans>
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

function how({ warm }: Start, time: string): string {
  return warm == null ? time : warm ? t`${time}, warm start` : t`${time}, cold start`;
}

const skewed = (start: Start) => start.clock_skew_ms != null && start.clock_skew_ms !== 0;
