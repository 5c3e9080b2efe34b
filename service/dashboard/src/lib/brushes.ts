import { t } from "@lingui/core/macro";

import type { Job } from "../api/types";
import { type Key, readKey, type TrialAxis } from "./axes";
import { parameter } from "./trials";

/** What passes on an axis: numbers from one to another, some words, or, with an empty list, only what has no value. */
export type Brush = [number, number] | string[];
export type Brushes = Readonly<Partial<Record<Key, Brush>>>;

/** A part of an axis, from 0 (bottom) to 1. */
export type Part = [number, number];

/** The brush of a part of an axis that was drawn over; null where it holds nothing or all. */
export function brushOf(axis: TrialAxis, [one, other]: Part): Brush | null {
  const [from, to] = [Math.max(0, Math.min(one, other)), Math.min(1, Math.max(one, other))];
  if (axis.kind !== "words") return from <= 0 && to >= 1 ? null : [axis.valueAt(from), axis.valueAt(to)];
  const words = axis.ticks.filter(({ at }) => at >= from && at <= to).map((tick) => tick.words);
  return words.length === 0 || words.length === axis.order.length ? null : words;
}

/** Where a brush lies on its axis; null for one of what has no value. */
export function partOf(axis: TrialAxis, brush: Brush): Part | null {
  if (axis.kind === "words") {
    const places = axis.ticks.filter(({ words }) => passesWords(brush, words)).map(({ at }) => at);
    const half = 0.5 / Math.max(1, axis.order.length);
    return places.length === 0 ? null : [Math.min(...places) - half, Math.max(...places) + half];
  }
  const [from, to] = isRange(brush) ? brush : numbersOf(brush);
  const [low, high] = [axis.place(from), axis.place(to)];
  return low === null || high === null ? null : [low, high];
}

function isRange(brush: Brush): brush is [number, number] {
  return typeof brush[0] === "number";
}

function numbersOf(words: readonly string[]): [number, number] | [undefined, undefined] {
  const numbers = words.map(Number).filter((value) => !Number.isNaN(value));
  return numbers.length === 0 ? [undefined, undefined] : [Math.min(...numbers), Math.max(...numbers)];
}

function passesWords(brush: Brush, words: string): boolean {
  return isRange(brush) ? Number(words) >= brush[0] && Number(words) <= brush[1] : brush.includes(words);
}

function passes(axis: TrialAxis, brush: Brush, value: unknown): boolean {
  if (brush.length === 0 || value === undefined) return brush.length === 0 && value === undefined;
  if (!isRange(brush) || axis.kind === "words") return passesWords(brush, parameter(value));
  const [place, part] = [axis.place(value), partOf(axis, brush)];
  // By places, not values: what is beyond the end of an axis is drawn at it, and passes with it.
  return place !== null && part !== null && place >= part[0] && place <= part[1];
}

/** Whether each trial passes all brushes. */
export function selected(trials: readonly Job[], axes: readonly TrialAxis[], brushes: Brushes): boolean[] {
  const drawn = axes.flatMap((axis) => {
    const brush = brushes[axis.key];
    return brush === undefined ? [] : [{ axis, brush }];
  });
  return trials.map((trial) => drawn.every(({ axis, brush }) => passes(axis, brush, readKey(trial, axis.key))));
}

/** A brush in words: `0.001 to 0.1`, `adam, sgd`, `no value`. */
export function brushWords(brush: Brush): string {
  if (brush.length === 0) return t`no value`;
  if (!isRange(brush)) return brush.join(", ");
  const [from = "", to = ""] = brush.map(parameter);
  return t`${from} to ${to}`;
}

export function withBrush(brushes: Brushes, key: Key, brush: Brush | null): Brushes {
  const others = Object.fromEntries(Object.entries(brushes).filter(([one]) => one !== key)) as Brushes;
  return brush === null ? others : { ...others, [key]: brush };
}

/** The brushes of axes that stay; undefined for none. */
export function ofAxes(brushes: Brushes, kept: readonly Key[]): Brushes | undefined {
  const left = Object.entries(brushes).filter(([key]) => kept.includes(key as Key));
  return left.length > 0 ? Object.fromEntries(left) : undefined;
}
