import { t } from "@lingui/core/macro";

import type { Policy } from "../api/types";
import { setting } from "./setting";
import { exactDuration } from "./time";

/** The spans of a policy, in the order in which one meets them. */
export const SPANS = [
  { key: "half_life", label: t`Usage halves after`, hint: t`What somebody has used counts half after this long.` },
  { key: "class_age", label: t`Waiting lifts a class after`, hint: t`So long a wait lifts a job by one priority class.` },
  { key: "longest_wait", label: t`Comes before all after`, hint: t`From then on nothing overtakes or preempts the job.` },
  { key: "min_run", label: t`Left alone at first`, hint: t`A job that was started is not preempted before.` },
  { key: "preemption_cost", label: t`A preemption costs`, hint: t`Checkpoint, start, and work done again.` },
  { key: "checkpoint_timeout", label: t`A checkpoint may take`, hint: t`If it takes longer, the preemption is given up.` },
  { key: "time_slice", label: t`Time slice`, hint: t`A new job of unknown length gets so long when the box is over-full; empty: off.` },
] as const satisfies readonly { key: keyof Policy; label: string; hint: string }[];

export type SpanKey = (typeof SPANS)[number]["key"];

export const SWITCHES = [
  { key: "backfill", label: t`Backfill`, hint: t`Jobs may start before one that is blocked, if that does not delay it.` },
  { key: "preemption", label: t`Preemption`, hint: t`A job may be stopped, after a checkpoint, for one that comes first.` },
] as const satisfies readonly { key: keyof Policy; label: string; hint: string }[];

export const ORDERS = [
  { key: "fair", label: t`Fair` }, { key: "fifo", label: t`First come` }, { key: "las", label: t`Least service` },
] as const satisfies readonly { key: Policy["order"]; label: string }[];

/** A span of a policy as people read it. */
export function spanWords(span: Policy[SpanKey]): string {
  if (span == null) return t`off`;
  return typeof span === "string" ? span : exactDuration(span);
}

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

/** The fields that have another value than when the draft was begun. */
export function policyChanges(before: PolicyDraft, after: PolicyDraft): Partial<Policy> {
  const [was, now] = [policyOf(before), policyOf(after)];
  const changed = (Object.keys(now) as (keyof Policy)[]).filter((key) => now[key] !== was[key]);
  return Object.fromEntries(changed.map((key) => [key, now[key]]));
}
