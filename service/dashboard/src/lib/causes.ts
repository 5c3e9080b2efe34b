import { t } from "@lingui/core/macro";

/** Why a job is stopped, as a sentence, by the reason of its stop. */
export const CAUSES: Readonly<Record<string, string>> = {
  cancel: t`it was cancelled`,
  timeout: t`it ran into its time limit`,
  idle: t`it did nothing for longer than its idle limit`,
  hung: t`it made no step any more`,
  early: t`other trials of its sweep do better`,
  preempt: t`it was preempted`,
  drain: t`its node is draining`,
};
