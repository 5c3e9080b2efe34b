import { t } from "@lingui/core/macro";
import { memo } from "react";

import type { Window } from "../lib/lanes";
import { newestOf, stepsOf, type Use } from "../lib/utilization";

interface Props {
  /** The device's key. */
  device: string;
  /** Whose: a device in words. */
  of: string;
  use: Use;
  window: Window;
}

/** How busy a device was over time, as an area, and how much of its memory was held, as a line. */
export const LaneUse = memo(function LaneUse({ device, of, use, window }: Props) {
  const words = newestOf(use).join(", ");
  return (
    <svg
      className="lane-use"
      viewBox="0 0 100 100"
      preserveAspectRatio="none"
      role="img"
      aria-label={t`Use of ${of}: ${words}`}
      data-use={device}
    >
      <path className="lane-busy" d={stepsOf(use.utilization, use, window).area} />
      <path className="lane-memory" d={stepsOf(use.memory, use, window).line} />
    </svg>
  );
});
