import { t } from "@lingui/core/macro";

import type { Attention, Job } from "../api/types";
import { attentionWords } from "./attention";
import { failureWords } from "./failure";
import type { ToldJob } from "./listed";
import { isFinal } from "./states";

export type NotificationKind = "started" | "hangs" | "failed" | "done";

/** What has become of a person's job. */
export interface JobNotification {
  /** The same for as long as nothing else becomes of the job. */
  id: string;
  kind: NotificationKind;
  number: number;
  name: string;
  at: string;
  /** Why, where there is more to say. */
  message: string | null;
}

/** The newest of each job, the last first. Trials of sweeps are left out: a sweep may have hundreds. */
export function notificationsOf(jobs: readonly ToldJob[], attention: readonly Attention[]): JobNotification[] {
  const hung = new Map(attention.flatMap((one) => (one.kind === "hung" && one.job != null ? [[one.job, one]] : [])));
  const found = jobs.filter(({ group }) => group == null).map((job) => ofJob(job, hung.get(job.number)));
  return found.filter((one) => one !== null).sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

function ofJob(job: ToldJob, hung: Attention | undefined): JobNotification | null {
  const { number, name, state, started_at: startedAt, ended_at: endedAt } = job;
  const made = (kind: NotificationKind, at: string, message: string | null = null) => (
    { id: `${number} ${kind} ${at}`, kind, number, name, at, message }
  );
  if (isFinal(state)) {
    if (endedAt === null || state === "cancelled") return null;
    return state === "failed" ? made("failed", endedAt, job.error && failureWords(job.error).headline) : made("done", endedAt);
  }
  if (hung?.since != null) return made("hangs", hung.since, attentionWords(hung));
  return startedAt !== null && state !== "queued" ? made("started", startedAt) : null;
}

/** Jobs of a person that are remembered: a page may be open for days. */
const MOST = 200;

/** A person's jobs with one as an event tells of it, unless it is a trial, or what is known of it is newer. */
export function withNewest(jobs: readonly ToldJob[], job: ToldJob): readonly ToldJob[] {
  const known = jobs.find(({ id }) => id === job.id);
  if (job.group != null || (known !== undefined && known.version > job.version)) return jobs;
  return [job, ...jobs.filter((one) => one !== known)].slice(0, MOST);
}

/** Those that were not there before; none of the first that are read, which are no news. */
export function newsOf(
  before: ReadonlySet<string> | null, now: readonly JobNotification[],
): readonly JobNotification[] {
  return before === null ? [] : now.filter(({ id }) => !before.has(id));
}

/** The count of unread ones, as a badge shows it. */
export function badge(count: number): string {
  return count > 9 ? "9+" : String(count);
}

/** A notification in one line. */
export function headlineOf({ kind, number, name }: JobNotification): string {
  if (kind === "started") return t`${number} ${name} has started`;
  if (kind === "hangs") return t`${number} ${name} hangs`;
  return kind === "failed" ? t`${number} ${name} failed` : t`${number} ${name} is done`;
}

/** The state whose lamp a notification has. */
export const LAMPS: Record<NotificationKind, Job["state"]> = {
  started: "running", hangs: "unreachable", failed: "failed", done: "succeeded",
};
