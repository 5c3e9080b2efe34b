import type { Series } from "../api/types";
import { bytes } from "./format";

export interface Gauge {
  title: string;
  series: Series[];
  words: (value: number) => string;
}

const percent = (value: number) => `${Math.round(value)} %`;

/** What is measured, by the last word of a series' name: `gpu.0.utilization` and `gpu.1.utilization` share a chart. */
const GAUGES: readonly { title: string; match: RegExp; words: (value: number) => string }[] = [
  { title: "GPU utilisation", match: /^gpu\.\d+\.utilization$/, words: percent },
  { title: "GPU memory", match: /^gpu\.\d+\.memory_used$/, words: bytes },
  { title: "Processor", match: /^cpu\.(?:percent|\d+\.utilization)$/, words: percent },
  { title: "Memory", match: /^memory\.used$|^cpu\.\d+\.memory_used$/, words: bytes },
];

/** The charts of telemetry that there are data for. */
export function gauges(series: readonly Series[]): Gauge[] {
  return GAUGES.flatMap(({ title, match, words }) => {
    const matching = series.filter((one) => match.test(one.name));
    const named = matching.map((one) => ({ ...one, name: deviceOf(one.name) }));
    return named.length > 0 ? [{ title, series: named, words }] : [];
  });
}

/** `GPU 0` of `gpu.0.utilization`; what belongs to no device is the sum of all processes. */
function deviceOf(name: string): string {
  const [kind = "", index = ""] = name.split(".");
  return /^\d+$/.test(index) ? `${kind === "gpu" ? "GPU" : "CPU slot"} ${index}` : "all processes";
}

/** The values of one series, the last `count` of them; empty if it is not there. */
export function lastValues(series: readonly Series[], name: string, count: number): number[] {
  const points = series.find((one) => one.name === name)?.points ?? [];
  return points.slice(-count).flatMap(([, , value]) => (typeof value === "number" ? [value] : []));
}
