import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { SubmissionNote } from "../api/types";
import { type Advice, adviceWords } from "./advice";

type Params = SubmissionNote["params"];
type Note = Pick<SubmissionNote, "code" | "message" | "params">;

/** Words for a note on a submission, by its code; null where it lacks a detail. */
export const NOTES: Readonly<Record<string, (params: Params) => string | null>> = {
  "no-nodes": () => t`no node has registered yet, so whether it fits one is not known`,
  "one-node": (params) => adviceWords(params as unknown as Advice),
  network: (params) => adviceWords(params as unknown as Advice),
  launcher: ({ launcher, said, why, subject }) => (typeof said === "string"
    ? t`launcher ${{ launcher: String(launcher) }}, because ${{ said: launcherReason(why, subject) ?? said }}`
    : null),
  "node-gpus": ({ count }) => (typeof count === "number" ? t`\`gpus\` ${count}, all that a node can give` : null),
  "quota-gpus": ({ count }) => (typeof count === "number" ? t`\`gpus\` ${count}, all that the quota allows` : null),
  "other-batch": ({ before, after }) => (typeof before === "number"
    ? t`goes on with an effective batch of ${{ after: String(after) }} samples instead of ${before}, and as many fewer or more steps an epoch: \`recipe.global_batch_size\` ${before} (without \`batch_size\`) keeps it on any number of GPUs`
    : null),
  "gpu-memory": gpuMemory,
  "new-project": ({ project }) => (typeof project === "string" ? t`project ${project} is new` : null),
  stoppable: ({ after }) => (typeof after === "string"
    ? t`once it has run for ${after}, it may be stopped for others, and starts from its newest checkpoint, or else from the beginning (\`restartable: true\`)`
    : null),
  "never-stopped": () => t`it is never stopped for others, as the policy has \`preemption: false\` and \`time_slice: null\``,
  "put-back": ({ after, times, restartable }) => (typeof after === "string"
    ? t`until it has saved something, it may be put back ${after} after its first step and start from the beginning, ${{ times: String(times) }} times at most (restartable: ${{ restartable: String(restartable) }})`
    : null),
  "never-put-back": neverPutBack,
  "hang-steps": () => t`\`hang\` watches the steps that a script reports, as by \`torchyard.report(step=step, loss=loss)\`, not its log`,
};

/** A note in the chosen language; in the service's own words in English, and where there are no others. */
export function noteWords({ code, message, params }: Note, locale = i18n.locale): string {
  const words = locale !== "en" && Object.hasOwn(NOTES, code) ? NOTES[code]?.(params) : null;
  return words ?? message;
}

/** Notes as clauses of one sentence. */
export function notesWords(notes: readonly Note[], locale = i18n.locale): string {
  return notes.map((note) => noteWords(note, locale)).join(t`; `);
}

function gpuMemory({ jobs, held, asked, option }: Params): string | null {
  if (typeof held !== "string") return null;
  const [count, most, command] = [String(jobs), String(asked), `\`${String(option)}\``];
  return jobs === 1
    ? t`the last job like it held ${held} of a GPU at most, and this one asks for ${most}: ${command} would do`
    : t`the last ${count} jobs like it held ${held} of a GPU at most, and this one asks for ${most}: ${command} would do`;
}

function neverPutBack({ by, setting, project }: Params): string | null {
  if (by === "policy" && typeof setting === "string") return t`it is never put back to start over, as the policy has ${setting}`;
  if (typeof project !== "string") return null;
  return by === "list"
    ? t`it is never put back to start over, as the policy has project ${project} in \`no_restarts\``
    : t`it is never put back to start over, as project ${project} wants it`;
}

/** Why a launcher was chosen, by its code; older clients give a sentence alone. */
export const LAUNCHER_REASONS: Readonly<Record<string, (subject: string) => string>> = {
  "no-torch": () => t`the job's Python has no torch, and its script imports none`,
  "starts-itself": (starts) => t`${starts} starts the processes itself`,
  "takes-rank": (name) => t`the script takes its rank as ${name}`,
  "left-out": (typed) => t`the command asks for it (\`${typed}\` is left out: the queue starts one process per GPU itself)`,
};

function launcherReason(why: unknown, subject: unknown): string | undefined {
  return typeof why === "string" && typeof subject === "string" && Object.hasOwn(LAUNCHER_REASONS, why)
    ? LAUNCHER_REASONS[why]?.(subject)
    : undefined;
}
