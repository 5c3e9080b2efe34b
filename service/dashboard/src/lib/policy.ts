import type { Policy } from "../api/types";
import { setting } from "./setting";

/** The spans of a policy, in the order in which one meets them. */
export const SPANS = [
  { key: "half_life", label: "Usage halves after", hint: "What somebody has used counts half after this long." },
  { key: "class_age", label: "Waiting lifts a class after", hint: "So long a wait lifts a job by one priority class." },
  { key: "longest_wait", label: "Comes before all after", hint: "From then on nothing overtakes or preempts the job." },
  { key: "min_run", label: "Left alone at first", hint: "A job that was started is not preempted before." },
  { key: "preemption_cost", label: "A preemption costs", hint: "Checkpoint, start, and work done again." },
  { key: "checkpoint_timeout", label: "A checkpoint may take", hint: "If it takes longer, the preemption is given up." },
  { key: "time_slice", label: "Time slice", hint: "A new job of unknown length gets so long when the box is over-full; empty: off." },
] as const satisfies readonly { key: keyof Policy; label: string; hint: string }[];

export type SpanKey = (typeof SPANS)[number]["key"];

export const SWITCHES = [
  { key: "backfill", label: "Backfill", hint: "Jobs may start before one that is blocked, if that does not delay it." },
  { key: "preemption", label: "Preemption", hint: "A job may be stopped, after a checkpoint, for one that comes first." },
] as const satisfies readonly { key: keyof Policy; label: string; hint: string }[];

export const ORDERS = [
  { key: "fair", label: "Fair" }, { key: "fifo", label: "First come" }, { key: "las", label: "Least service" },
] as const satisfies readonly { key: Policy["order"]; label: string }[];

/** A policy while it is edited: spans are texts, such as `90s`, `10m`, `4h` or `7d`. */
export interface PolicyDraft {
  chosen: Policy;
  texts: Record<SpanKey, string>;
}

export function draftOf(policy: Policy): PolicyDraft {
  const texts = Object.fromEntries(SPANS.map(({ key }) => [key, policy[key] == null ? "" : setting(policy[key])]));
  return { chosen: policy, texts: texts as Record<SpanKey, string> };
}

/** The policy to send; the service reads the spans. */
export const policyOf = ({ chosen, texts }: PolicyDraft) =>
  ({ ...chosen, ...texts, time_slice: texts.time_slice || null });
