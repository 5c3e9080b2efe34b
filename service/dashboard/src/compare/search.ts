import type { Key } from "../lib/axes";
import type { Brushes } from "../lib/brushes";
import type { Axis } from "../lib/series";
import { isKey, parseBrushes } from "../sweep/search";

/** What an address of the compare page says. */
export interface CompareSearch {
  /** Numbers or ids, with commas. */
  jobs?: string | undefined;
  /** Names of metrics, with commas; absent: the first ones. */
  metrics?: string | undefined;
  axis?: Axis | undefined;
  scale?: "linear" | "log" | undefined;
  smooth?: "on" | "off" | undefined;
  /** Axes of the parallel coordinates; absent: the first ones. */
  axes?: Key[] | undefined;
  brush?: Brushes | undefined;
}

export function parseCompare(raw: Record<string, unknown>): CompareSearch {
  const text = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : undefined);
  const brush = parseBrushes(raw.brush);
  return {
    ...(text(raw.jobs) !== undefined && { jobs: text(raw.jobs) }),
    ...(text(raw.metrics) !== undefined && { metrics: text(raw.metrics) }),
    ...(raw.axis === "time" && { axis: "time" as const }),
    ...(raw.scale === "log" && { scale: "log" as const }),
    ...(raw.smooth === "on" && { smooth: "on" as const }),
    ...(Array.isArray(raw.axes) && { axes: raw.axes.filter(isKey) }),
    ...(Object.keys(brush).length > 0 && { brush }),
  };
}
