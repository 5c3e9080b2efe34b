/** When enough is free, which pages tell as the expected start. */
const ENOUGH = /; enough is expected to be free at about [-\d]+ [:\d]+ UTC(?:, when (.*? for it))?/;

/** A reason to wait without the time at which it is over, for where the expected start stands beside it. */
export function withoutTime(reason: string): string {
  return reason.replace(ENOUGH, (_, others: string | undefined) => others === undefined ? "" : `; ${others}`);
}
