import type { Job } from "../api/types";
import type { JobState } from "./states";

const MARKS: Record<JobState, string> = {
  queued: "…", assigned: "…", starting: "▶", running: "▶", stopping: "■", unreachable: "?",
  succeeded: "✓", failed: "✗", cancelled: "–",
};

/** The title of a job's tab: its state by a mark, number and name. */
export function jobTitle({ state, number, name }: Pick<Job, "state" | "number" | "name">): string {
  return `${MARKS[state]} ${number} ${name}`;
}
