import type { Job } from "../api/types";
import { duration, secondsBetween } from "./time";

/** How long a job has run by now, without its waits; null if it never started. */
export function ran(job: Pick<Job, "started_at" | "ran_s" | "running_since">, now: number): string | null {
  if (job.started_at === null) return null;
  const { running_since: since } = job;
  return duration(job.ran_s + (since == null ? 0 : Math.max(0, secondsBetween(since, null, now))));
}
