import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { number } from "../lib/format";
import { duration } from "../lib/time";

interface Progress {
  source?: string;
  step: number;
  total_steps: number | null;
  eta_s: number | null;
}

/** The part that is done; null where no total is known, or it has been passed and so is none. */
function shareOf({ step, total_steps: total }: Progress): number | null {
  return total === null || total === 0 || step > total ? null : step / total;
}

/** Progress as a track: sleepers ahead, rail laid behind. */
export function Track({ progress, moving }: { progress: Progress; moving: boolean }) {
  const { source, step } = progress;
  const share = shareOf(progress);
  const eta = share === null ? null : progress.eta_s;
  const [at, left] = [number(step), eta === null ? "" : duration(eta)];
  return (
    <div className="track-cell">
      <div
        className="track"
        data-moving={moving || undefined}
        data-open={share === null || undefined}
        role="progressbar"
        aria-label={t`Progress`}
        aria-valuemin={0}
        {...(share !== null && { "aria-valuemax": 100, "aria-valuenow": Math.round(share * 100) })}
      >
        <div className="track-laid" style={{ width: `${((share ?? 0) * 100).toFixed(2)}%` }} />
      </div>
      <span className="track-words" title={source === "printed" ? t`Read from what the job prints` : undefined}>
        {share === null ? t`step ${at}` : `${Math.floor(share * 100)} %`}
        {moving && eta !== null && <span className="faint"> · <Trans>{left} left</Trans></span>}
      </span>
    </div>
  );
}
