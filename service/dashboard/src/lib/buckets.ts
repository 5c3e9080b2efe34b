import type { Buckets, Series } from "../api/types";
import { type Axis, keyOf, type Point } from "./series";

/** Points of a line that a chart can show, about one for each pixel; of more it draws buckets. */
export const BUDGET = 1_000;

/** A part of the axis, both ends included: steps, or unix time in seconds. */
export interface Range {
  start: number;
  end: number;
}

/** A part of all series, more closely than in the whole. */
export interface Detail {
  range: Range;
  series: Series[];
}

/** Where an axis finds the ends of a bucket, and the place of a point. */
const ENDS = {
  step: { first: "first_step", last: "last_step", point: 0 },
  time: { first: "first_time", last: "last_time", point: 1 },
} as const;
const COLUMNS = ["first_step", "last_step", "first_time", "last_time", "count", "min", "mean", "max"] as const;

/** One bucket; a point is one that begins and ends in the same place. */
type Bucket = Record<(typeof COLUMNS)[number], number>;

function bucketsOf(columns: Buckets | null | undefined): Bucket[] {
  return columns?.count.map((_, index) => (
    Object.fromEntries(COLUMNS.map((name) => [name, columns[name][index] ?? 0])) as Bucket
  )) ?? [];
}

function toColumns(buckets: readonly Bucket[]): Buckets | null {
  if (buckets.length === 0) return null;
  return Object.fromEntries(COLUMNS.map((name) => [name, buckets.map((bucket) => bucket[name])])) as unknown as Buckets;
}

/** The series with a part of them replaced by what is known of it more closely; what has come since then follows. */
export function splice(whole: readonly Series[], { range, series }: Detail, axis: Axis): Series[] {
  const closer = new Map(series.map((one) => [keyOf(one), one]));
  return whole.map((one) => {
    const inside = closer.get(keyOf(one));
    if (inside === undefined) return one;
    const end = endOf(inside, axis);
    if (end === -Infinity) return one;
    const before = outside(one, axis, (_, last) => last < range.start);
    const after = outside(one, axis, (first) => first > end);
    const parts = [before, inside, after];
    return {
      ...one,
      points: parts.flatMap((part) => part.points),
      buckets: toColumns(parts.flatMap((part) => bucketsOf(part.buckets))),
    };
  });
}

function outside(series: Series, axis: Axis, keeps: (first: number, last: number) => boolean): Series {
  const { first, last, point: place } = ENDS[axis];
  const buckets = bucketsOf(series.buckets).filter((bucket) => keeps(bucket[first], bucket[last]));
  const points = series.points.filter((point) => keeps(point[place], point[place]));
  return { ...series, points, buckets: toColumns(buckets) };
}

function endOf(series: Series, axis: Axis): number {
  const { last, point: place } = ENDS[axis];
  const ends = [...series.points.map((point) => point[place]), ...series.buckets?.[last] ?? []];
  return ends.reduce((most, end) => Math.max(most, end), -Infinity);
}

/** A series that has outgrown its chart, in buckets that hold what its points and buckets held. */
export function compact(series: Series, axis: Axis): Series {
  const { first, last } = ENDS[axis];
  if ((series.buckets?.count.length ?? 0) + series.points.length <= 2 * BUDGET) return series;
  const all = [...bucketsOf(series.buckets), ...series.points.flatMap(toBucket)];
  const place = (bucket: Bucket) => (bucket[first] + bucket[last]) / 2;
  const low = all.reduce((least, bucket) => Math.min(least, place(bucket)), Infinity);
  const high = all.reduce((most, bucket) => Math.max(most, place(bucket)), -Infinity);
  const width = (high - low) / BUDGET || 1;
  const merged = new Map<number, Bucket>();
  for (const bucket of all) {
    const number = Math.min(BUDGET - 1, Math.floor((place(bucket) - low) / width));
    const known = merged.get(number);
    merged.set(number, known === undefined ? bucket : merge(known, bucket));
  }
  const buckets = [...merged.values()].sort((one, other) => one[first] - other[first]);
  const points = series.points.filter(([, , value]) => typeof value === "string");
  return { ...series, points: thinned(points, ENDS[axis].point), buckets: toColumns(buckets) };
}

/** Of points that are no numbers the first of each kind in `BUDGET` parts, and the last: they may go on for days. */
function thinned(points: Point[], place: 0 | 1): Point[] {
  const [low, high] = [points[0]?.[place] ?? 0, points.at(-1)?.[place] ?? 0];
  const width = (high - low) / BUDGET || 1;
  const seen = new Set<string>();
  return points.length <= BUDGET
    ? points
    : points.filter((point) => {
        const key = `${Math.floor((point[place] - low) / width)} ${point[2]}`;
        return point === points.at(-1) || (!seen.has(key) && seen.add(key));
      });
}

/** The ranks of each metric as one series: at each place the mean over the ranks, with bounds that hold all of them. */
export function acrossRanks(series: readonly Series[]): Series[] {
  const metrics = new Map<string, Series[]>();
  for (const one of series) metrics.set(one.name, [...metrics.get(one.name) ?? [], one]);
  return [...metrics.values()].flatMap((ranks) => {
    const [first] = ranks;
    if (first === undefined || ranks.length === 1) return ranks;
    const merged = new Map<number, Bucket>();
    for (const bucket of ranks.flatMap((one) => [...bucketsOf(one.buckets), ...one.points.flatMap(toBucket)])) {
      const known = merged.get(bucket.first_step);
      merged.set(bucket.first_step, known === undefined ? bucket : merge(known, bucket));
    }
    const buckets = [...merged.values()].sort((one, other) => one.first_step - other.first_step);
    const special = ranks.flatMap((one) => one.points.filter(([, , value]) => typeof value === "string"));
    return [{ ...first, points: special.sort((one, other) => one[0] - other[0]), buckets: toColumns(buckets) }];
  });
}

function toBucket([step, time, value]: Point): Bucket[] {
  if (typeof value === "string") return [];
  const ends = { first_step: step, last_step: step, first_time: time, last_time: time };
  return [{ ...ends, count: 1, min: value, mean: value, max: value }];
}

function merge(one: Bucket, other: Bucket): Bucket {
  const count = one.count + other.count;
  return {
    first_step: Math.min(one.first_step, other.first_step),
    last_step: Math.max(one.last_step, other.last_step),
    first_time: Math.min(one.first_time, other.first_time),
    last_time: Math.max(one.last_time, other.last_time),
    count,
    min: Math.min(one.min, other.min),
    mean: one.mean * (one.count / count) + other.mean * (other.count / count),
    max: Math.max(one.max, other.max),
  };
}
