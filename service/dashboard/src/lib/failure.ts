import type { Job } from "../api/types";

type JobError = NonNullable<Job["error"]>;

/** A failure in words. */
export interface FailureWords {
  /** The exception's own line, or what the service says where there is none. */
  headline: string;
  /** How the process ended, where the headline does not say it: `rank 0 exited with code 1`. */
  how: string | null;
  /** What to do about a failure that is known. */
  advice: string | null;
}

const TRACEBACK = "Traceback (most recent call last):";
/** How the service begins when it tells of the end of a process. */
const ENDED = /^((?:rank \d+|the launcher|exited|killed)[^:]*): (.+)$/s;

export function failureWords(error: Pick<JobError, "message" | "traceback">): FailureWords {
  const raised = raisedLine(error.traceback ?? "");
  const [, how, told] = ENDED.exec(error.message) ?? [];
  const advice = told === undefined || told === raised ? null : told;
  if (raised === null) return { headline: error.message, how: null, advice: null };
  return { headline: raised, how: how ?? error.message, advice };
}

/** The line of the exception that was raised last, as Python writes it behind the frames. */
function raisedLine(traceback: string): string | null {
  const begin = traceback.lastIndexOf(TRACEBACK);
  if (begin < 0) return null;
  const lines = traceback.slice(begin + TRACEBACK.length).split("\n");
  return lines.find((line) => /^\S/.test(line))?.trimEnd() ?? null;
}
