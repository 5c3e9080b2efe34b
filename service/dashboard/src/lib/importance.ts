import type { Job } from "../api/types";
import { parameter, valueOf } from "./trials";

/** Trials with a value below which nothing is said. */
export const FEWEST = 10;
/** Groups that the numbers of a parameter are put into at most. */
const GROUPS = 5;
/** The 95 % point of the standard normal distribution. */
const Z95 = 1.6449;

/** How much a parameter alone tells of a metric. */
export interface Importance {
  name: string;
  /** From 0 to 1: the part of the variance of the metric's ranks that lies between groups of the parameter. */
  share: number;
  /** Whether chance alone gives as much in one of twenty sweeps. */
  chance: boolean;
  /** Spearman's correlation with the metric; null for words. */
  correlation: number | null;
}

/**
 * The importance of each parameter, the largest first; null below `FEWEST` trials with a finite value.
 *
 * Kruskal and Wallis's H of the metric's ranks over the parameter's values (numbers in at most five groups of like
 * size), and from it eta squared, (H - k + 1) / (n - k) for k groups of n trials, which is 0 on average where there is
 * no effect. Chance is H's own test at 5 %, by chi squared (Wilson and Hilferty's approximation).
 */
export function importance(trials: readonly Job[], names: readonly string[], metric: string): Importance[] | null {
  const known = trials.flatMap((trial) => {
    const value = valueOf(trial, metric);
    return value !== null && Number.isFinite(value) ? [{ trial, value }] : [];
  });
  if (known.length < FEWEST) return null;
  const rank = ranks(known.map(({ value }) => value));
  return names
    .map((name) => ({ name, ...effect(known.map(({ trial }) => trial.parameters?.[name]), rank) }))
    .sort((one, other) => other.share - one.share);
}

function effect(values: readonly unknown[], rank: readonly number[]): Omit<Importance, "name"> {
  const numbers = values.filter((value) => typeof value === "number");
  const correlation = numbers.length === values.length ? pearson(ranks(numbers), rank) : null;
  const [groups, n] = [groupsOf(values), values.length];
  const members = new Map<string | number, number[]>();
  groups.forEach((group, at) => members.set(group, [...members.get(group) ?? [], rank[at] ?? 0]));
  const k = members.size;
  if (k < 2 || k >= n) return { share: 0, chance: true, correlation };
  const mean = (n + 1) / 2;
  const total = rank.reduce((sum, one) => sum + (one - mean) ** 2, 0);
  const between = [...members.values()].reduce((sum, of) => sum + of.length * (average(of) - mean) ** 2, 0);
  const h = total === 0 ? 0 : (n - 1) * between / total;
  const df = k - 1;
  const critical = df * (1 - 2 / (9 * df) + Z95 * Math.sqrt(2 / (9 * df))) ** 3;
  return { share: Math.max(0, (h - k + 1) / (n - k)), chance: h < critical, correlation };
}

const average = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Which group each value is in: its own word, or for many numbers a fifth of them by size. */
function groupsOf(values: readonly unknown[]): (string | number)[] {
  const distinct = new Set(values.map((value) => parameter(value ?? null)));
  if (distinct.size <= GROUPS || !values.every((value) => typeof value === "number")) {
    return values.map((value) => parameter(value ?? null));
  }
  // By ranks, so that like values share a group.
  return ranks(values).map((rank) => Math.min(GROUPS - 1, Math.floor((rank - 0.5) / values.length * GROUPS)));
}

/** Ranks from 1; equal values share the mean of theirs. */
export function ranks(values: readonly number[]): number[] {
  const order = values.map((value, at) => ({ value, at })).sort((one, other) => one.value - other.value);
  const found = new Array<number>(values.length);
  for (let start = 0; start < order.length;) {
    let end = start + 1;
    while (end < order.length && order[end]?.value === order[start]?.value) end += 1;
    for (const { at } of order.slice(start, end)) found[at] = (start + 1 + end) / 2;
    start = end;
  }
  return found;
}

function pearson(one: readonly number[], other: readonly number[]): number | null {
  const [a, b] = [average(one), average(other)];
  const sum = (of: (at: number) => number) => one.reduce((total, _, at) => total + of(at), 0);
  const x = (at: number) => (one[at] ?? 0) - a;
  const y = (at: number) => (other[at] ?? 0) - b;
  const size = Math.sqrt(sum((at) => x(at) ** 2) * sum((at) => y(at) ** 2));
  return size === 0 ? null : sum((at) => x(at) * y(at)) / size;
}
