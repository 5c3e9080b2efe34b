import type { Series } from "../api/types";

export type Point = Series["points"][number];
/** What the horizontal axis shows: training steps, or seconds since the first point. */
export type Axis = "step" | "time";

export interface Group {
  /** Last word of the metrics' names: `loss` of `train/loss` and `val/loss`. */
  name: string;
  series: Series[];
}

/** Metrics that belong on one chart, in order of their first appearance. */
export function groupSeries(series: readonly Series[]): Group[] {
  const groups = new Map<string, Series[]>();
  for (const one of series) {
    const name = one.name.slice(one.name.lastIndexOf("/") + 1);
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  return [...groups].map(([name, members]) => ({ name, series: members }));
}

/** Names of a chart's lines; the rank is told only where several ranks report the same metric. */
export function labels(series: readonly Series[]): string[] {
  return series.map((one) => {
    const shared = series.some((other) => other !== one && other.name === one.name);
    return shared ? `${one.name} · rank ${one.rank}` : one.name;
  });
}

/** Adds newer points to those that are there; a step sent again replaces the old value. */
export function mergeSeries(known: readonly Series[], newer: readonly Series[]): Series[] {
  const merged = new Map(known.map((one) => [keyOf(one), one]));
  for (const one of newer) {
    const old = merged.get(keyOf(one));
    merged.set(keyOf(one), old === undefined ? one : { ...old, points: appendPoints(old.points, one.points) });
  }
  return [...merged.values()];
}

function keyOf(series: Series): string {
  return `${series.rank} ${series.name}`;
}

function appendPoints(known: Point[], newer: Point[]): Point[] {
  const first = newer[0];
  if (first === undefined) return known;
  let keep = known.length;
  while (keep > 0 && (known[keep - 1]?.[0] ?? -1) >= first[0]) keep -= 1;
  return [...known.slice(0, keep), ...newer];
}

export function longest(series: readonly Series[]): number {
  return series.reduce((most, one) => Math.max(most, one.points.length), 0);
}

/** A value that no line can go through, and where it lies. */
export interface Mark {
  x: number;
  kind: "nan" | "inf" | "-inf";
  series: number;
}

export interface Table {
  x: number[];
  /** One column per series: null breaks the line, undefined is no point of this series. */
  columns: (number | null | undefined)[][];
  marks: Mark[];
}

/** Brings series with different steps onto one axis. */
export function toTable(series: readonly Series[], axis: Axis, logarithmic = false): Table {
  const origin = axis === "time" ? firstTime(series) : 0;
  const at = (point: Point) => (axis === "step" ? point[0] : point[1] - origin);
  const x = [...new Set(series.flatMap((one) => one.points.map(at)))].sort((a, b) => a - b);
  const row = new Map(x.map((value, index) => [value, index]));
  const marks: Mark[] = [];
  const columns = series.map((one, index) => {
    const column = new Array<number | null | undefined>(x.length).fill(undefined);
    for (const point of one.points) {
      const value = point[2];
      if (typeof value === "string") marks.push({ x: at(point), kind: value, series: index });
      column[row.get(at(point)) ?? 0] = typeof value === "string" || (logarithmic && value <= 0) ? null : value;
    }
    return column;
  });
  return { x, columns, marks };
}

function firstTime(series: readonly Series[]): number {
  return series.reduce((least, one) => Math.min(least, one.points[0]?.[1] ?? Infinity), Infinity);
}

/** Where a step lies on the axis in use: itself, or the time of the first point from there on. */
export function placeOfStep(series: readonly Series[], step: number, axis: Axis): number | null {
  if (axis === "step") return step;
  const origin = firstTime(series);
  const times = series.map((one) => one.points.find((point) => point[0] >= step)?.[1] ?? Infinity);
  const time = Math.min(...times);
  return Number.isFinite(time) ? time - origin : null;
}

/** Exponential moving average without the bias of its start; gaps stay gaps. `weight` is that of the past, 0 to 1. */
export function smooth(column: readonly (number | null | undefined)[], weight: number): (number | null | undefined)[] {
  let average = 0;
  let mass = 0;
  return column.map((value) => {
    if (value === null || value === undefined) return value;
    average = average * weight + value * (1 - weight);
    mass = mass * weight + (1 - weight);
    return average / mass;
  });
}
