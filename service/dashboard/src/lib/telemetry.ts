import { t } from "@lingui/core/macro";

import type { Series } from "../api/types";
import { bytes, number } from "./format";

export interface Gauge {
  title: string;
  series: Series[];
  words: (value: number) => string;
}

const percent = (value: number) => `${Math.round(value)} %`;

/** What is measured, by the name of a series: `gpu.0.utilization` and `gpu.1.utilization` share a chart. */
const GAUGES: readonly { title: string; match: RegExp; words: (value: number) => string }[] = [
  { title: t`GPU utilisation`, match: /^gpu\.\d+\.utilization$/, words: percent },
  { title: t`GPU memory`, match: /^gpu\.\d+\.memory_used$/, words: bytes },
  { title: t`GPU temperature`, match: /^gpu\.\d+\.temperature$/, words: (value) => `${number(Math.round(value * 10) / 10)} °C` },
  { title: t`GPU power`, match: /^gpu\.\d+\.power$/, words: (value) => `${number(Math.round(value))} W` },
  { title: t`Processor`, match: /^cpu\.(?:percent|\d+\.utilization)$/, words: percent },
  { title: t`Memory`, match: /^memory\.used$|^cpu\.\d+\.memory_used$/, words: bytes },
];

/** The charts of telemetry that there are data for. Of a job on several nodes the names begin with the node's. */
export function gauges(series: readonly Series[]): Gauge[] {
  return GAUGES.flatMap(({ title, match, words }) => {
    const matching = series.filter((one) => match.test(partsOf(one.name).what));
    const named = matching.map((one) => ({ ...one, name: placeOf(one.name) }));
    return named.length > 0 ? [{ title, series: named, words }] : [];
  });
}

/** `kiln` and `gpu.0.power` of `kiln/gpu.0.power`. */
function partsOf(name: string): { node: string | null; what: string } {
  const at = name.lastIndexOf("/");
  return at < 0 ? { node: null, what: name } : { node: name.slice(0, at), what: name.slice(at + 1) };
}

/** `GPU 0` of `gpu.0.utilization`; what belongs to no device is the sum of all processes. */
function placeOf(name: string): string {
  const { node, what } = partsOf(name);
  const [kind = "", index = ""] = what.split(".");
  const single = kind === "gpu" ? t`GPU ${index}` : t`CPU slot ${index}`;
  const device = /^\d+$/.test(index) ? single : t`all processes`;
  return node === null ? device : `${node}, ${device}`;
}

/** The values of one series, the last `count` of them; empty if it is not there. */
export function lastValues(series: readonly Series[], name: string, count: number): number[] {
  const points = series.find((one) => one.name === name)?.points ?? [];
  return points.slice(-count).flatMap(([, , value]) => (typeof value === "number" ? [value] : []));
}
