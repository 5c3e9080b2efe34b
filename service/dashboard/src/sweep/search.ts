import type { SearchSchemaInput } from "@tanstack/react-router";

import type { Key } from "../lib/axes";
import type { Brush, Brushes } from "../lib/brushes";
import type { Mode } from "../lib/trials";

/** What an address of a sweep says. */
export interface SweepSearch {
  /** What trials are compared by; absent: what the sweep says itself. */
  metric?: string | undefined;
  mode?: Mode | undefined;
  brush?: Brushes | undefined;
  /** What the scatter plot shows across and up. */
  x?: Key | undefined;
  y?: Key | undefined;
}

export const isKey = (value: unknown): value is Key => typeof value === "string" && /^(?:parameter|metric):./.test(value);

const isBrush = (value: unknown): value is Brush => Array.isArray(value) && (
  value.every((one) => typeof one === "string") || (value.length === 2 && value.every(Number.isFinite))
);

/** Reads the brushes of an address; what is none is left out. */
export function parseBrushes(raw: unknown): Brushes {
  if (typeof raw !== "object" || raw === null) return {};
  return Object.fromEntries(Object.entries(raw).filter(([key, value]) => isKey(key) && isBrush(value)));
}

/** Reads an address; what is unknown is left out. */
export function parseSweep(raw: Partial<Record<keyof SweepSearch, unknown>> & SearchSchemaInput): SweepSearch {
  const brush = parseBrushes(raw.brush);
  return {
    ...((typeof raw.metric === "string" || typeof raw.metric === "number") && raw.metric !== "" && { metric: String(raw.metric) }),
    ...((raw.mode === "min" || raw.mode === "max") && { mode: raw.mode }),
    ...(Object.keys(brush).length > 0 && { brush }),
    ...(isKey(raw.x) && { x: raw.x }),
    ...(isKey(raw.y) && { y: raw.y }),
  };
}
