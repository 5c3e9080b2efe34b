import type { Axis } from "../lib/series";

/** What an address of the compare page says. */
export interface CompareSearch {
  /** Numbers or ids, with commas. */
  jobs?: string | undefined;
  /** Names of metrics, with commas; absent: the first ones. */
  metrics?: string | undefined;
  axis?: Axis | undefined;
  scale?: "linear" | "log" | undefined;
  smooth?: "on" | "off" | undefined;
}

export function parseCompare(raw: Record<string, unknown>): CompareSearch {
  const text = (value: unknown) => (typeof value === "string" || typeof value === "number" ? String(value) : undefined);
  return {
    ...(text(raw.jobs) !== undefined && { jobs: text(raw.jobs) }),
    ...(text(raw.metrics) !== undefined && { metrics: text(raw.metrics) }),
    ...(raw.axis === "time" && { axis: "time" as const }),
    ...(raw.scale === "log" && { scale: "log" as const }),
    ...(raw.smooth === "on" && { smooth: "on" as const }),
  };
}
