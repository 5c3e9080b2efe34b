import type { Job } from "../api/types";

/** A job's place in the queue; null where more than its turn keeps it waiting. */
export function placeOf({ place, held, blocked }: Pick<Job, "place" | "held" | "blocked">): number | null {
  return held || blocked ? null : place ?? null;
}

/** When enough is free, which pages tell as the expected start. */
const ENOUGH = /; enough is expected to be free at about [-\d]+ [:\d]+ UTC(?:, when (others) are (preempted for it))?/;

/** A reason to wait without the time at which it is over, for where the expected start stands beside it. */
export function withoutTime(reason: string): string {
  return reason.replace(ENOUGH, (_, others?: string, how?: string) => others === undefined ? "" : `; ${others} will be ${how}`);
}
