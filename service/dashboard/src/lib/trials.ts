import { t } from "@lingui/core/macro";

import type { Group, Job } from "../api/types";
import { list, tick } from "./format";
import type { JobState } from "./states";

export type Mode = "min" | "max";

/** A parameter's value as a person reads it. */
export function parameter(value: unknown): string {
  if (typeof value === "number") return tick(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Where a parameter's values come from, in words: `0.1, 0.2`, `log-uniform 1e-4 to 0.1`. */
export function values(form: unknown): string {
  if (Array.isArray(form)) return form.map(parameter).join(", ");
  const [[kind, ends] = ["", []]] = Object.entries(form as Record<string, [number, number]>);
  const [from = "", to = ""] = ends.map(parameter);
  if (kind === "range") return t`${from} to ${to}, the last left out`;
  if (kind === "uniform") return t`uniform, ${from} to ${to}`;
  return kind === "integer" ? t`whole numbers, ${from} to ${to}` : t`log-uniform, ${from} to ${to}`;
}

/** The value that a trial is compared by; NaN and what is not there are no values. */
export function valueOf(trial: Job, name: string | null): number | null {
  const value = name === null ? undefined : trial.latest[name];
  if (typeof value === "number") return value;
  return value === "inf" ? Infinity : value === "-inf" ? -Infinity : null;
}

/** Metrics that trials have reported, by name. */
export function metricsOf(trials: readonly Job[]): string[] {
  return [...new Set(trials.flatMap((trial) => Object.keys(trial.latest)))].sort();
}

/** Whether large or small values of a metric are probably good, by its name. */
export function likelyMode(name: string): Mode {
  return /acc|auc|f1|bleu|score|reward|precision|recall/i.test(name) ? "max" : "min";
}

export interface Sorting {
  /** `trial`, `state`, `ran`, `value`, or a parameter as `parameter:lr`. */
  key: string;
  falling: boolean;
}

/** Trials in order of a column; what has no value comes last either way. */
export function sortTrials(trials: readonly Job[], sorting: Sorting, name: string | null): Job[] {
  const sign = sorting.falling ? -1 : 1;
  return trials.toSorted((one, other) => {
    const [a, b] = [cell(one, sorting.key, name), cell(other, sorting.key, name)];
    const order = a === null || b === null ? Number(a === null) - Number(b === null) : sign * compare(a, b);
    return order || (one.trial ?? 0) - (other.trial ?? 0);
  });
}

function compare(a: string | number, b: string | number): number {
  return typeof a === "number" && typeof b === "number" ? a - b || 0 : String(a).localeCompare(String(b));
}

function cell(trial: Job, key: string, name: string | null): string | number | null {
  if (key === "value") return valueOf(trial, name);
  if (key === "state") return trial.state;
  if (key === "trial") return trial.trial ?? null;
  const value = trial.parameters?.[key.slice(key.indexOf(":") + 1)];
  return typeof value === "number" || typeof value === "string" ? value : value == null ? null : JSON.stringify(value);
}

/** How good each trial is among those with a value, from 0 to 1 by its rank; null without one. */
export function goodness(trials: readonly Job[], name: string, mode: Mode): (number | null)[] {
  const found = trials.map((trial) => valueOf(trial, name));
  const sorted = found.filter((value) => value !== null).sort((a, b) => (mode === "max" ? a - b : b - a));
  const rank = new Map(sorted.map((value, at) => [value, at]));
  return found.map((value) => (value === null ? null : (rank.get(value) ?? 0) / Math.max(1, sorted.length - 1)));
}

/** The colour of a trial: the better the stronger; what failed is red, what has no value grey. */
export function trialColor(trial: Pick<Job, "state">, good: number | null): string {
  if (trial.state === "failed") return "var(--c-failed)";
  if (good === null) return "var(--faint)";
  return `color-mix(in oklab, var(--trial-good) ${Math.round(good * 100)}%, var(--trial-bad))`;
}

/** What a sweep as a whole is: it runs or waits as long as a trial does; then its worst end tells. */
export function stateOf(sweep: Pick<Group, "states" | "stopped_early" | "ended_at">): JobState {
  if (sweep.states.running) return "running";
  if (sweep.ended_at === null) return "queued";
  // Trials that were stopped because others do better are no cancelled sweep.
  if ((sweep.states.cancelled ?? 0) > sweep.stopped_early) return "cancelled";
  return sweep.states.failed ? "failed" : "succeeded";
}

interface Searched {
  trials?: number | null;
  running?: number | null;
  stop?: { metric: string; first: number; reduction: number } | null;
}

function halved({ metric, first, reduction }: NonNullable<Searched["stop"]>): string {
  return t`the best in ${reduction} by ${metric} go on from step ${first}`;
}

/** How a sweep searches, in words. */
export function search(sweep: Group): string {
  const { trials, running, stop } = sweep.sweep as Searched;
  return list([
    trials == null ? t`grid` : t`random search`,
    ...(running == null ? [] : [t`at most ${running} at once`]),
    ...(stop == null ? [] : [halved(stop)]),
  ]);
}
