import type { Series } from "../api/types";
import { isHeldOut, kindOf } from "./metricNames";
import { lastValue } from "./series";

/** A metric that says how a training goes. */
export interface Highlight {
  name: string;
  latest: number | string;
  /** The best value with the word for it, where it is known which end is the better one. */
  best: { word: "lowest" | "highest"; value: number } | null;
  /** Its curve, the first value first. */
  values: number[];
}

const MOST = 4;

/** The metrics that say most: accuracies and losses, on held-out data first; of others the first two. */
export function highlights(series: readonly Series[]): Highlight[] {
  const first = new Map<string, Series>();
  for (const one of series) {
    const known = first.get(one.name);
    if (known === undefined || one.rank < known.rank) first.set(one.name, one);
  }
  const named = [...first.values()].filter(({ name }) => kindOf(name) !== "system" && !isProgress(name));
  const telling = named.filter((one) => kindOf(one.name) !== "other");
  const chosen = telling.length > 0 ? telling.sort((a, b) => weight(a.name) - weight(b.name)) : named.slice(0, 2);
  return chosen.slice(0, MOST).flatMap(highlight);
}

/** What was read from a job's bars and `epoch 3/90`: the track above shows it. */
const isProgress = (name: string): boolean => name === "progress" || name.startsWith("progress/");

function weight(name: string): number {
  return (isHeldOut(name) ? 0 : 2) + (kindOf(name) === "accuracy" ? 0 : 1);
}

function highlight(series: Series): Highlight[] {
  const { name, points, buckets } = series;
  const latest = lastValue(series);
  if (latest === undefined) return [];
  const numbers = points.flatMap(([, , value]) => (typeof value === "number" ? [value] : []));
  return [{ name, latest, best: bestOf(series, numbers), values: [...buckets?.mean ?? [], ...numbers] }];
}

function bestOf({ name, buckets }: Series, numbers: readonly number[]): Highlight["best"] {
  const kind = kindOf(name);
  const lowest = [...buckets?.min ?? [], ...numbers].reduce((a, b) => Math.min(a, b), Infinity);
  const highest = [...buckets?.max ?? [], ...numbers].reduce((a, b) => Math.max(a, b), -Infinity);
  if (lowest > highest) return null;
  if (kind === "loss") return { word: "lowest", value: lowest };
  return kind === "accuracy" ? { word: "highest", value: highest } : null;
}
