import type { Job } from "../api/types";
import { tick } from "./format";
import { wordsOf } from "./metricNames";
import { parameter, valueOf } from "./trials";

/** What trials differ by: `parameter:lr`, or what they came to: `metric:val/loss`. */
export type Key = `${"parameter" | "metric"}:${string}`;

export const nameOf = (key: Key) => key.slice(key.indexOf(":") + 1);

/** Distinct numbers from which on an axis is a scale; fewer have a place each. */
const SCALE_FROM = 6;
/** How many times the least the most must be for a logarithmic scale. */
const LOGARITHMIC_FROM = 50;
/** Values from which on a tenth at the bad end of a metric may lie beyond the end of its axis. */
const WILD_FROM = 8;

/** What a trial has on an axis; undefined for nothing, which a metric's NaN is too. */
export function readKey(trial: Job, key: Key): unknown {
  return key.startsWith("metric:") ? valueOf(trial, nameOf(key)) ?? undefined : trial.parameters?.[nameOf(key)];
}

export interface Tick {
  at: number;
  words: string;
}

interface Common {
  key: Key;
  ticks: Tick[];
  /** The place of a value from 0 to 1, its ends included; null for none. */
  place: (value: unknown) => number | null;
}

/** Numbers on a scale. */
export interface ScaleAxis extends Common {
  kind: "linear" | "log";
  /** The number at a place from 0 to 1. */
  valueAt: (place: number) => number;
}

/** Words, or few numbers, with a place each. */
export interface WordAxis extends Common {
  kind: "words";
  order: string[];
}

export type TrialAxis = ScaleAxis | WordAxis;

/** What is known of an axis besides its values. */
interface Hints {
  /** Which end of a metric is the good one. */
  mode?: "min" | "max" | undefined;
  /** How the sweep says that the values of a parameter are drawn, as `{"uniform": [0, 1]}`. */
  form?: unknown;
}

/** The axis of a parameter or a metric. */
export function axisOf(trials: readonly Job[], key: Key, { mode = "min", form }: Hints = {}): TrialAxis {
  const found = trials.map((trial) => readKey(trial, key)).filter((value) => value !== undefined);
  const metric = key.startsWith("metric:");
  const numbers = found.filter((value) => typeof value === "number");
  if (!metric && (numbers.length < found.length || new Set(numbers).size < SCALE_FROM)) return wordAxis(key, found);
  const finite = numbers.filter(Number.isFinite).sort((a, b) => a - b);
  if (metric) return scaleAxis(key, calm(finite, mode), null);
  return scaleAxis(key, [finite[0] ?? 0, finite.at(-1) ?? 1], isLogarithmic(form));
}

/** Whether values are drawn by their logarithm; null where the sweep does not say, as with a list of them. */
function isLogarithmic(form: unknown): boolean | null {
  return typeof form === "object" && form !== null && !Array.isArray(form) ? "loguniform" in form : null;
}

/** The ends of a metric's axis: a few wild values do not flatten the rest. */
function calm(sorted: readonly number[], mode: "min" | "max"): [number, number] {
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? share;
  const wild = sorted.length >= WILD_FROM;
  return mode === "min" ? [at(0), at(wild ? 0.9 : 1)] : [at(wild ? 0.1 : 0), at(1)];
}

function scaleAxis(key: Key, [low, high]: [number, number], drawn: boolean | null): ScaleAxis {
  const logarithmic = low > 0 && (drawn ?? high / low >= LOGARITHMIC_FROM);
  const [scaled, unscaled] = logarithmic ? [Math.log, Math.exp] : [Number, Number];
  const [from, width] = [scaled(low), scaled(high) - scaled(low)];
  const words = (key.startsWith("metric:") ? wordsOf(nameOf(key)) : null) ?? tick;
  const place = (value: unknown) => {
    if (typeof value !== "number") return null;
    if (width === 0) return value === low ? 0.5 : Number(value > low);
    return Math.min(1, Math.max(0, logarithmic && value <= 0 ? 0 : (scaled(value) - from) / width));
  };
  const valueAt = (at: number) => (at <= 0 ? low : at >= 1 ? high : Number(unscaled(from + at * width).toPrecision(4)));
  const ticks = width === 0 ? [0.5] : [0, 0.25, 0.5, 0.75, 1];
  return {
    key, kind: logarithmic ? "log" : "linear", place, valueAt, ticks: ticks.map((at) => ({ at, words: words(valueAt(at)) })),
  };
}

function wordAxis(key: Key, found: readonly unknown[]): WordAxis {
  const order = [...new Set([...new Set(found)].sort((a, b) => (
    typeof a === "number" && typeof b === "number" ? a - b : parameter(a).localeCompare(parameter(b))
  )).map(parameter))];
  const placeOf = (words: string) => (order.includes(words) ? (order.indexOf(words) + 0.5) / order.length : null);
  const place = (value: unknown) => (value === undefined ? null : placeOf(parameter(value)));
  return { key, kind: "words", order, place, ticks: order.map((words) => ({ at: placeOf(words) ?? 0, words })) };
}

/** Parameters that trials differ by, in the order of the sweep, then the metric. */
export function keysOf(names: readonly string[], trials: readonly Job[], metric: string): Key[] {
  const varies = (name: string) => new Set(trials.map((trial) => parameter(trial.parameters?.[name] ?? null))).size > 1;
  const differing = names.filter(varies);
  return [...(differing.length > 0 ? differing : names).map((name): Key => `parameter:${name}`), `metric:${metric}`];
}
