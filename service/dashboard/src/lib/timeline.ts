import { t } from "@lingui/core/macro";

import type { Event, Job } from "../api/types";
import { isFinal, type JobState } from "./states";

/** A span that a job spent in one state, in milliseconds since the epoch. */
export interface Span {
  state: JobState;
  from: number;
  to: number;
  /** Share of the whole, with short spans widened so that they can be seen. */
  share: number;
  open: boolean;
}

type Times = Pick<Job, "started_at" | "ended_at">;

const LEAST_SHARE = 0.04;

/**
 * The spans between changes of state, until the end or `now`. The first run and the end are told as the job tells them,
 * by the node's clock: events are stored some moments later.
 */
export function spans(events: readonly Event[], job: Times, now: number): Span[] {
  const raw: Omit<Span, "share">[] = [];
  for (const event of events) {
    const at = Math.max(Date.parse(toldBy(job, event, raw) ?? event.at), raw.at(-1)?.from ?? 0);
    const last = raw.at(-1);
    if (last?.state === event.state) continue;
    if (last?.open === true) Object.assign(last, { to: at, open: false });
    if (!isFinal(event.state)) raw.push({ state: event.state, from: at, to: Math.max(at, now), open: true });
  }
  return withShares(raw);
}

/** When the job says that this happened, if it is its first run or its end. */
function toldBy(job: Times, { state }: Event, before: readonly Pick<Span, "state">[]): string | null {
  if (isFinal(state)) return job.ended_at;
  return state === "running" && before.every((span) => span.state !== state) ? job.started_at : null;
}

function withShares(raw: Omit<Span, "share">[]): Span[] {
  const total = raw.reduce((sum, span) => sum + span.to - span.from, 0) || 1;
  const widened = raw.map((span) => Math.max(LEAST_SHARE, (span.to - span.from) / total));
  const sum = widened.reduce((all, share) => all + share, 0);
  return raw.map((span, index) => ({ ...span, share: (widened[index] ?? 0) / sum }));
}

/** Where the time of a job went. */
export interface Spent {
  key: "queue" | "start" | "data" | "steps" | "stop";
  label: string;
  /** In seconds. */
  seconds: number;
}

const PARTS: Partial<Record<JobState, Spent["key"]>> = {
  queued: "queue", assigned: "start", starting: "start", running: "steps", stopping: "stop", unreachable: "steps",
};
const LABELS: Record<Spent["key"], string> = {
  queue: t`waiting in the queue`, start: t`starting`, data: t`waiting for data`, steps: t`running`, stop: t`stopping`,
};

/**
 * The time in each part of a job's life, without the empty ones. `dataWait` is the share of its running time in which
 * it waited for data, null where it does not tell.
 */
export function spent(line: readonly Pick<Span, "state" | "from" | "to">[], dataWait: number | null): Spent[] {
  const sums: Record<Spent["key"], number> = { queue: 0, start: 0, data: 0, steps: 0, stop: 0 };
  for (const { state, from, to } of line) {
    const key = PARTS[state];
    if (key !== undefined) sums[key] += (to - from) / 1000;
  }
  if (dataWait !== null) {
    sums.data = sums.steps * Math.min(1, Math.max(0, dataWait));
    sums.steps -= sums.data;
  }
  return (Object.keys(sums) as Spent["key"][])
    .map((key) => ({ key, label: LABELS[key], seconds: sums[key] }))
    .filter(({ seconds }) => seconds > 0);
}
