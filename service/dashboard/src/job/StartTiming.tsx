import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";

import { useStarts } from "../api/jobs";
import type { Job, StartTiming as Start } from "../api/types";
import { coldWords, packageNames } from "../lib/coldStart";
import { fixed } from "../lib/format";
import { stageLabel } from "../lib/stages";
import { milliseconds } from "../lib/time";
import { Coded } from "../ui/Coded";
import { Panel } from "../ui/Panel";

/** How the start of the newest attempt went: each stage where it lay in the whole. */
export function StartTiming({ job }: { job: Job }) {
  const start = useStarts(job).data?.at(-1);
  if (start === undefined || start.stages.length === 0) return null;
  const whole = ended(start);
  const cold = coldWords(start);
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
      {cold !== null && <Cold reason={<Coded text={cold} />} />}
      {start.preloaded != null && <Preloaded found={start.preloaded} />}
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

function Cold({ reason }: { reason: ReactNode }) {
  return <p className="stages-note soft"><Trans>Cold start: {reason}.</Trans></p>;
}

/** What it found loaded since earlier jobs have imported it. */
function Preloaded({ found }: { found: NonNullable<Start["preloaded"]> }) {
  const { packages, modules: count, seconds } = found;
  const modules = plural(count, { one: "# module", other: "# modules" });
  return (
    <p className="stages-note soft">
      <Trans>
        Loaded ahead: {{ names: packageNames(packages) }} ({modules}, whose import took{" "}
        {{ time: fixed(seconds, 1) }} s).
      </Trans>
    </p>
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
