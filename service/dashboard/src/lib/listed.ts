import type { Job } from "../api/types";
import type { JobState } from "./states";

/** A job as an event tells of it: its spec comes only with an answer. */
export type ToldJob = Omit<Job, "spec">;

/**
 * The jobs of a list with one of them as an event tells of it: changed in its place, or taken out where the list asks
 * for other states. `null` where nothing changes: the list does not have the job, or has a newer version of it.
 */
export function withTold(items: readonly Job[], states: readonly JobState[], job: ToldJob): Job[] | null {
  const known = items.find(({ id }) => id === job.id);
  if (known === undefined || known.version > job.version) return null;
  if (!holds(states, job)) return items.filter((one) => one !== known);
  return items.map((one) => (one === known ? { ...one, ...job, place: one.place ?? null } : one));
}

/** Whether a list of some states, or of all of them if none is named, has a job in its state. */
function holds(states: readonly JobState[], { state }: ToldJob): boolean {
  return states.length === 0 || states.includes(state);
}
