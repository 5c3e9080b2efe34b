import { t } from "@lingui/core/macro";

import type { Buckets, Series } from "../api/types";

export type Point = Series["points"][number];
/** What the horizontal axis shows: training steps, or seconds since the first point. */
export type Axis = "step" | "time";

/** Names of a chart's lines; the rank is told only where several ranks report the same metric. */
export function labels(series: readonly Series[]): string[] {
  return series.map((one) => {
    const shared = series.some((other) => other !== one && other.name === one.name);
    const { name, rank } = one;
    return shared ? t`${name} · rank ${rank}` : name;
  });
}

/** Adds newer points to those that are there; a step sent again replaces the old value. */
export function mergeSeries(known: readonly Series[], newer: readonly Series[]): Series[] {
  const merged = new Map(known.map((one) => [keyOf(one), one]));
  for (const one of newer) {
    const old = merged.get(keyOf(one));
    merged.set(keyOf(one), old === undefined ? one : append(old, one));
  }
  return [...merged.values()];
}

function append(known: Series, newer: Series): Series {
  const buckets = appendBuckets(known.buckets, newer.buckets);
  return { ...known, points: appendPoints(known.points, newer.points), ...(buckets && { buckets }) };
}

/** Tells the series of a job apart. */
export function keyOf(series: Series): string {
  return `${series.rank} ${series.name}`;
}

function appendPoints(known: Point[], newer: Point[]): Point[] {
  const first = newer[0];
  if (first === undefined) return known;
  let keep = known.length;
  while (keep > 0 && (known[keep - 1]?.[0] ?? -1) >= first[0]) keep -= 1;
  return [...known.slice(0, keep), ...newer];
}

function appendBuckets(known: Series["buckets"], newer: Series["buckets"]): Buckets | null {
  if (known == null || newer == null) return known ?? newer ?? null;
  const columns = Object.entries(known) as [keyof Buckets, number[]][];
  return Object.fromEntries(columns.map(([name, column]) => [name, [...column, ...newer[name]]])) as unknown as Buckets;
}

/** A value that no line can go through, and where it lies. */
export interface Mark {
  x: number;
  kind: "nan" | "inf" | "-inf";
  series: number;
}

type Column = (number | null | undefined)[];

export interface Table {
  x: number[];
  /** One column per series, of a bucket its mean: null breaks the line, undefined is no point of this series. */
  columns: Column[];
  /** Smallest and largest values, by series, if any has buckets; where it has points both are the point. */
  bands: { low: Column; high: Column }[] | null;
  /** The buckets of each series, by their place on the axis. */
  held: Map<number, Held>[];
  /** Where on the axis a bucket begins and ends, by its place on it. */
  spans: Map<number, [number, number]>;
  marks: Mark[];
}

/** What a bucket holds, whatever can be drawn of it. */
interface Held {
  count: number;
  min: number;
  max: number;
}

/** A value on the axis: that of a point, or what a bucket comes to. */
interface Place {
  x: number;
  value: number | null;
  low: number | null;
  high: number | null;
}

/** Brings series with different steps onto one axis. Time counts from `origin`, in seconds. */
export function toTable(
  series: readonly Series[], axis: Axis, logarithmic = false, origin = firstTime(series),
): Table {
  const shift = axis === "time" ? origin : 0;
  const table: Omit<Table, "x" | "columns" | "bands"> = { held: [], spans: new Map(), marks: [] };
  const lines = series.map((one, index) => {
    const held = new Map<number, Held>();
    table.held.push(held);
    const inBuckets = bucketPlaces(one, axis, shift, held, table.spans);
    return [...inBuckets, ...pointPlaces(one, axis, shift, index, table.marks)];
  });
  if (logarithmic) lines.forEach((line) => toLogarithmic(line, leastPositive(lines)));
  const x = [...new Set(lines.flatMap((line) => line.map((place) => place.x)))].sort((a, b) => a - b);
  const row = new Map(x.map((value, index) => [value, index]));
  const columnsOf = (what: "value" | "low" | "high") => lines.map((line) => {
    const column: Column = new Array<number | null | undefined>(x.length).fill(undefined);
    for (const place of line) column[row.get(place.x) ?? 0] = place[what];
    return column;
  });
  const highs = table.spans.size > 0 ? columnsOf("high") : [];
  const bands = table.spans.size > 0 ? columnsOf("low").map((low, index) => ({ low, high: highs[index] ?? [] })) : null;
  return { x, columns: columnsOf("value"), bands, ...table };
}

function bucketPlaces(
  { buckets }: Series, axis: Axis, shift: number, held: Map<number, Held>, spans: Table["spans"],
): Place[] {
  if (buckets == null) return [];
  const [firsts, lasts] = axis === "step"
    ? [buckets.first_step, buckets.last_step]
    : [buckets.first_time, buckets.last_time];
  return buckets.mean.map((value, index) => {
    const first = (firsts[index] ?? 0) - shift;
    const last = (lasts[index] ?? 0) - shift;
    const x = (first + last) / 2;
    const [low, high] = [buckets.min[index] ?? value, buckets.max[index] ?? value];
    held.set(x, { count: buckets.count[index] ?? 1, min: low, max: high });
    spans.set(x, [first, last]);
    return { x, value, low, high };
  });
}

function pointPlaces({ points }: Series, axis: Axis, shift: number, series: number, marks: Mark[]): Place[] {
  return points.map(([step, time, value]) => {
    const x = (axis === "step" ? step : time) - shift;
    if (typeof value === "number") return { x, value, low: value, high: value };
    marks.push({ x, kind: value, series });
    return { x, value: null, low: null, high: null };
  });
}

/** Where a logarithmic axis may end: at the smallest value that it can show. */
function leastPositive(lines: readonly Place[][]): number {
  let least = Infinity;
  for (const line of lines) {
    for (const { value, low, high } of line) {
      for (const one of [value, low, high]) if (one !== null && one > 0 && one < least) least = one;
    }
  }
  return least;
}

/** Leaves out what has no logarithm; a band that reaches below zero goes down to the end of the axis. */
function toLogarithmic(line: Place[], end: number): void {
  for (const place of line) {
    if (place.value !== null && place.value <= 0) place.value = null;
    if (place.high !== null && place.high <= 0) place.low = place.high = null;
    if (place.low !== null && place.low <= 0) place.low = end;
  }
}

/** Unix time of the first point, in seconds; infinity if there is none. */
export function firstTime(series: readonly Series[]): number {
  return series.reduce((least, { points, buckets }) => (
    Math.min(least, points[0]?.[1] ?? Infinity, buckets?.first_time[0] ?? Infinity)
  ), Infinity);
}

/** Where a step lies on the axis in use: itself, or the time of the first point from there on. */
export function placeOfStep(series: readonly Series[], step: number, axis: Axis): number | null {
  if (axis === "step") return step;
  const origin = firstTime(series);
  const times = series.map(({ points, buckets }) => Math.min(
    points.find((point) => point[0] >= step)?.[1] ?? Infinity,
    buckets?.first_time[buckets.last_step.findIndex((last) => last >= step)] ?? Infinity,
  ));
  const time = Math.min(...times);
  return Number.isFinite(time) ? time - origin : null;
}

/**
 * Exponential moving average without the bias of its start; gaps stay gaps. `weight` is that of the past, 0 to 1, for
 * each point: a value that stands for several (`counts`) weighs as much as they would.
 */
export function smooth(column: Column, weight: number, counts: (index: number) => number = () => 1): Column {
  let average = 0;
  let mass = 0;
  return column.map((value, index) => {
    if (value === null || value === undefined) return value;
    const past = weight ** counts(index);
    average = average * past + value * (1 - past);
    mass = mass * past + (1 - past);
    return average / mass;
  });
}

/** The newest value: of a long series the finite ones are in buckets, and its points may all lie before them. */
export function lastValue({ points, buckets }: Series): number | string | undefined {
  const point = points.at(-1);
  const mean = buckets?.mean.at(-1);
  if (mean === undefined) return point?.[2];
  return point !== undefined && point[0] >= (buckets?.last_step.at(-1) ?? -Infinity) ? point[2] : mean;
}

/** Mean of all points of a metric's lowest rank; null if it is not reported. */
export function meanOf(series: readonly Series[], name: string): number | null {
  const one = series.filter((each) => each.name === name).toSorted((a, b) => a.rank - b.rank)[0];
  const means = one?.buckets?.mean ?? [];
  let [count, sum] = [0, 0];
  one?.buckets?.count.forEach((each, index) => {
    count += each;
    sum += each * (means[index] ?? 0);
  });
  for (const [, , value] of one?.points ?? []) {
    if (typeof value !== "number") continue;
    count += 1;
    sum += value;
  }
  return count > 0 ? sum / count : null;
}
