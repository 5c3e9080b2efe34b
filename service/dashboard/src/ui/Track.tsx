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

/** Progress as a track: sleepers ahead, rail laid behind. */
export function Track({ progress, moving }: { progress: Progress; moving: boolean }) {
  const { source, step, total_steps: total, eta_s: eta } = progress;
  const [at, left] = [number(step), eta === null ? "" : duration(eta)];
  const share = total === null || total === 0 ? null : Math.min(1, step / total);
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
