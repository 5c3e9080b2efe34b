import type { Checkpoint, Job } from "../api/types";

type Saved = Pick<Checkpoint, "step" | "created_at" | "attempt">;

/** Why a checkpoint stays. */
const REASONS = ["newest", "best", "pinned"] as const;
export type ReasonToKeep = (typeof REASONS)[number];

/** Why a checkpoint stays: it is the newest, the best, or a job needs it. */
export function reasonsToKeep(
  { step, best, pinned }: Pick<Checkpoint, "step" | "best" | "pinned">, newestStep: number,
): ReasonToKeep[] {
  const holds = { newest: step === newestStep, best, pinned };
  return REASONS.filter((one) => holds[one]);
}

/** What a rerun from a checkpoint does again. */
export interface Repeat {
  steps: number;
  /** At the pace between the checkpoints, null where that is not known. */
  seconds: number | null;
}

/** What a rerun from a checkpoint does again to come to the last step that the job made. */
export function repeated(one: Saved, all: readonly Saved[], lastStep: number | null): Repeat | null {
  if (lastStep === null) return null;
  const steps = Math.max(0, lastStep - one.step);
  const pace = secondsPerStep(all);
  return { steps, seconds: pace === null ? null : steps * pace };
}

/** Seconds a step within the newest attempt that has two checkpoints; what lay between attempts does not count. */
function secondsPerStep(all: readonly Saved[]): number | null {
  const attempts = [...new Set(all.map((one) => one.attempt))].sort((a, b) => b - a);
  for (const attempt of attempts) {
    const its = all.filter((one) => one.attempt === attempt).toSorted((a, b) => a.step - b.step);
    const [first, last] = [its[0], its.at(-1)];
    if (first === undefined || last === undefined || last.step === first.step) continue;
    const seconds = (Date.parse(last.created_at) - Date.parse(first.created_at)) / 1000;
    if (seconds > 0) return seconds / (last.step - first.step);
  }
  return null;
}

/** What there was of a job when a checkpoint was asked for. */
export interface AskedCheckpoint {
  /** Ids of the checkpoints that it had. */
  before: readonly string[];
  attempt: number;
  /** Why its newest checkpoint could not be written. */
  unsaved: string | null;
}

/** Whether a checkpoint that was asked for is to come: it has neither come nor failed, and its attempt goes on. */
export function isAwaited(
  asked: AskedCheckpoint | undefined,
  job: Pick<Job, "attempt" | "unsaved">,
  found: readonly Pick<Checkpoint, "id">[] = [],
): boolean {
  if (asked?.attempt !== job.attempt || asked.unsaved !== (job.unsaved ?? null)) return false;
  return found.every(({ id }) => asked.before.includes(id));
}
