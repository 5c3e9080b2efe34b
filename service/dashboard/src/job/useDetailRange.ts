import { useMemo } from "react";

import type { Range } from "../lib/buckets";
import { useSettled } from "../ui/useSettled";

/** How long a zoom rests before its points are read, in milliseconds. */
const SETTLE_MS = 150;
/** Part of a zoom's width that is read on either side of it, so that lines lead out of sight. */
const MARGIN = 0.1;

/** The range to read for a zoom that has settled: a little more than is shown, on the axis of the service. */
export function useDetailRange(zoom: Range | null, shift: number): Range | null {
  const settled = useSettled(zoom, SETTLE_MS);
  return useMemo(() => {
    if (settled === null || !Number.isFinite(shift)) return null;
    const margin = (settled.end - settled.start) * MARGIN;
    return { start: settled.start - margin + shift, end: settled.end + margin + shift };
  }, [settled, shift]);
}
