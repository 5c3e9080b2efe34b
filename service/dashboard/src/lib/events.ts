import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { Event, JobError, SubmissionNote } from "../api/types";
import { CAUSES } from "./causes";
import { clausesWords } from "./clauses";
import { failureSentence } from "./failure";
import { list } from "./format";
import { notesWords } from "./notes";
import { preempting, preemptionAbandoned, preemptionRequested, preemptorOf, putBack } from "./preemptions";
import { type Alike, stacksWords } from "./stacksWords";

type Data = Event["data"];

/** What kinds of events are called. */
export const LABELS: Readonly<Record<string, string>> = {
  submitted: t({ message: "submitted", context: "event" }),
  held: t({ message: "held", context: "event" }),
  released: t({ message: "released", context: "event" }),
  changed: t({ message: "changed", context: "event" }),
  unblocked: t({ message: "unblocked", context: "event" }),
  assigned: t({ message: "assigned", context: "event" }),
  claimed: t({ message: "claimed", context: "event" }),
  prepared: t({ message: "prepared", context: "event" }),
  running: t({ message: "running", context: "event" }),
  voided: t({ message: "voided", context: "event" }),
  checkpoint: t({ message: "checkpoint", context: "event" }),
  "checkpoint-requested": t({ message: "checkpoint requested", context: "event" }),
  "checkpoint-failed": t({ message: "checkpoint failed", context: "event" }),
  inexact: t({ message: "inexact", context: "event" }),
  "stacks-requested": t({ message: "stacks requested", context: "event" }),
  stacks: t({ message: "stacks", context: "event" }),
  hangs: t({ message: "hangs", context: "event" }),
  idle: t({ message: "idle", context: "event" }),
  "goes-on": t({ message: "goes on", context: "event" }),
  "not-joined": t({ message: "not joined", context: "event" }),
  joined: t({ message: "joined", context: "event" }),
  awaiting: t({ message: "awaiting", context: "event" }),
  "awaiting-abandoned": t({ message: "awaiting abandoned", context: "event" }),
  preempting: t({ message: "preempting", context: "event" }),
  "preemption-abandoned": t({ message: "preemption abandoned", context: "event" }),
  "put-back": t({ message: "put back", context: "event" }),
  requeued: t({ message: "requeued", context: "event" }),
  "stop-requested": t({ message: "stop requested", context: "event" }),
  unreachable: t({ message: "unreachable", context: "event" }),
  reachable: t({ message: "reachable", context: "event" }),
  "part-ended": t({ message: "part ended", context: "event" }),
  succeeded: t({ message: "succeeded", context: "event" }),
  failed: t({ message: "failed", context: "event" }),
  cancelled: t({ message: "cancelled", context: "event" }),
  shared: t({ message: "shared", context: "event" }),
  unshared: t({ message: "unshared", context: "event" }),
  discarded: t({ message: "discarded", context: "event" }),
};

/** Words of each kind; null where an event lacks the details, as older ones do. */
export const WORDS: Readonly<Record<string, (data: Data, message: string) => string | null>> = {
  submitted,
  held: ({ sweep }) => (sweep === true ? t`held with its whole sweep` : t`held`),
  released: ({ sweep }) => (sweep === true ? t`released with its whole sweep` : t`released`),
  changed: (data) => list(Object.entries(data).map(([name, value]) => t`${name} is now ${{ value: shown(value) }}`)),
  unblocked: () => t`what it waited for has ended`,
  assigned,
  claimed: ({ node, restored }) => (typeof node !== "string"
    ? null
    : restored === true
      ? t`node ${node} had begun it already: the database was restored since`
      : t`node ${node} prepares code and environment`),
  voided,
  prepared: ({ nodes, address }) => (typeof address === "string"
    ? t`all ${{ count: String(nodes) }} nodes are ready; ranks meet at ${address}`
    : null),
  running,
  checkpoint,
  "checkpoint-requested": () => t`asked to write a checkpoint`,
  "checkpoint-failed": ({ step, text: said, parts }) => {
    if (typeof said !== "string") return null;
    const text = clausesWords(parts, said);
    return step === 0
      ? t`no checkpoint, the training goes on: ${text}`
      : t`no checkpoint of step ${{ step: String(step) }}, the training goes on: ${text}`;
  },
  inexact: ({ text: said, parts, resumed }) => {
    if (typeof said !== "string") return null;
    const text = clausesWords(parts, said);
    return resumed === true ? t`is not resumed exactly: ${text}` : t`could not be resumed exactly: ${text}`;
  },
  "stacks-requested": () => t`asked for its stacks`,
  stacks: ({ groups }) => (Array.isArray(groups) ? stacksWords(groups as Alike[]) : null),
  hangs: ({ silent, allowed }) => (typeof silent === "string"
    ? t`hangs: no step for ${silent}, where it may take ${{ allowed: String(allowed) }}`
    : null),
  idle: ({ lasts, limit, own }) => {
    if (typeof lasts !== "string") return null;
    return own === true
      ? t`its devices have done nothing for ${lasts}: it is stopped at its \`idle_limit\` of ${{ limit: String(limit) }}`
      : t`its devices have done nothing for ${lasts}: it is stopped at this installation's idle limit of ${{ limit: String(limit) }} (\`idle_limit\` in a spec is the job's own)`;
  },
  "goes-on": ({ hung }) => (hung === undefined ? null : hung === true ? t`makes steps again` : t`its devices work again`),
  "not-joined": () => t`after a minute none of its ranks has joined a process group: if its script never does, each of them trains a copy of its own. Cancel it and run it with \`launcher: python\` (\`yard run --launcher python\`), one process with all GPUs`,
  joined: () => t`its ranks have joined a process group by now: they train together`,
  awaiting: ({ numbers }) => (Array.isArray(numbers) ? t`to be preempted for it: ${{ jobs: jobs(numbers) }}` : null),
  "awaiting-abandoned": awaitingAbandoned,
  preempting,
  "preemption-abandoned": preemptionAbandoned,
  "put-back": putBack,
  requeued,
  "stop-requested": stopRequested,
  unreachable: ({ node, elsewhere }) => {
    if (typeof node !== "string" || elsewhere === undefined) return null;
    return elsewhere === true
      ? t`node ${node} is worked from another machine, home or container now; the job may still be running where it was started, so it is not started again until that one returns or an administrator declares it dead`
      : t`node ${node} is silent; the job may still be running there, so it is not started again`;
  },
  reachable: ({ node }) => (typeof node === "string" ? t`node ${node} is back` : null),
  "part-ended": ({ node, failed, first }) => {
    if (typeof node !== "string" || failed === undefined) return null;
    if (failed === false) return t`node ${node} has ended its part`;
    return first === true
      ? t`the part on node ${node} has failed; the other nodes are told to end theirs`
      : t`the part on node ${node} has failed`;
  },
  succeeded: ({ exit_code: code }) => (code === 0 ? t`exited with code 0` : null),
  failed,
  cancelled: (data) => (data.started === false ? t`cancelled before it started` : stopped(data)),
  shared: ({ until }) => (typeof until === "string" ? t`made a public link to it, until ${until}` : null),
  unshared: () => t`revoked all public links to it`,
  discarded: ({ size, why }) => (why === "" ? t`logs, metrics, checkpoints and outputs discarded (${{ size: String(size) }})` : null),
};

/** What the kind of an event is called in the chosen language. */
export function eventLabel(kind: string, locale = i18n.locale): string {
  return (locale === "en" ? undefined : LABELS[kind]) ?? kind;
}

/** An event in the chosen language; in the service's own words in English, and where there are no others. */
export function eventWords({ kind, message, data }: Pick<Event, "kind" | "message" | "data">, locale = i18n.locale): string {
  return (locale === "en" ? null : WORDS[kind]?.(data, message)) ?? message;
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What goes after it, such as advice, is told in the service's words where an older event lacks its notes. */
function submitted({ notes }: Data, message: string): string | null {
  if (Array.isArray(notes)) return t`submitted; ${{ more: notesWords(notes as SubmissionNote[]) }}`;
  const found = /^submitted(?:; (.*))?$/su.exec(message);
  if (found === null) return null;
  const more = found[1];
  return more === undefined ? t({ message: "submitted", context: "event" }) : t`submitted; ${more}`;
}

function voided({ node, lacks, limit_s: limit }: Data): string | null {
  if (typeof node !== "string") return null;
  if (lacks === "claim") return t`node ${node} has not claimed it within ${{ limit: String(limit) }} s`;
  return lacks === "preparation"
    ? t`node ${node} is not prepared within ${{ limit: String(limit) }} s`
    : t`node ${node} fell silent before all nodes were prepared`;
}

function jobs(numbers: unknown): string {
  return list((numbers as number[]).map((one) => t`job ${{ number: String(one) }}`));
}

function awaitingAbandoned({ numbers, late, why, allowed_s: allowed, spared_s: spared }: Data): string | null {
  if (!Array.isArray(numbers)) return null;
  if (why === "gone") return t`${{ jobs: jobs(numbers) }} no longer to be preempted for it: it no longer waits`;
  if (why === "moved") return t`${{ jobs: jobs(numbers) }} no longer to be preempted for it: it would not start there any more`;
  if (!Array.isArray(late)) return null;
  return t`no devices are freed by ${{ jobs: jobs(numbers) }}, for ${{ late: jobs(late) }} brought no verified checkpoint within ${{ allowed: String(allowed) }} s: this job waits on, and the late ones are not asked again for ${{ spared: String(spared) }} s`;
}

function assigned({ places, share }: Data): string | null {
  if (!Array.isArray(places)) return null;
  const devices = list((places as { node: string; unit: string; indexes: string }[]).map(({ node, unit, indexes }) => {
    if (indexes === "") return t`CPU cores of node ${node}`;
    return unit === "gpu" ? t`GPU ${indexes} of node ${node}` : t`CPU slot ${indexes} of node ${node}`;
  }));
  return typeof share === "string" && share !== "" ? t`assigned to ${devices}, with ${share} of each` : t`assigned to ${devices}`;
}

function running({ step, carried }: Data): string | null {
  if (carried === undefined) return null;
  if (carried === true) return t`the first instruction ran; it finds the files that the attempt before has left`;
  return typeof step === "number" ? t`the first instruction ran; resumes from step ${step}` : t`the first instruction ran`;
}

function checkpoint({ step: at, done, size }: Data): string | null {
  const step = String(at);
  if (done === "written") return t`checkpoint of step ${step} written`;
  if (done === "stored") return t`checkpoint of step ${step} stored (${{ size: String(size) }})`;
  return done === "deleted" ? t`checkpoint of step ${step} deleted` : null;
}

function requeued(data: Data): string | null {
  return data.again === undefined ? preempted(data) : startsAgain(data);
}

/** After an error. */
function startsAgain({ error, again, resumes, restarts, pause_s: pause, ...counts }: Data): string | null {
  if (error === undefined) return null;
  const failure = failureSentence(error as JobError);
  const next = nextTry(String(again), Number(counts.try), Number(counts.of), Number(pause));
  if (failure === null || next === null) return null;
  const told = t`${failure}; ${next}`;
  if (typeof resumes === "number") return t`${told}; resumes from step ${resumes}`;
  return restarts === true ? t`${told}; starts from the beginning` : told;
}

function nextTry(again: string, one: number, most: number, pause: number): string | null {
  switch (again) {
    case "idle": return pause > 0 ? t`starts again after ${pause} s (\`idle_action: requeue\`), no retry is spent` : t`starts again (\`idle_action: requeue\`), no retry is spent`;
    case "unstarted": return t`nothing had run yet, so no retry is spent`;
    case "spoiled": return t`it had begun with the files of the attempt before and got nowhere: it starts once more with those that it was submitted with, and no retry is spent`;
    case "port": return t`it starts once more, and no retry is spent`;
    case "fault": return pause > 0 ? t`not its own fault: try ${one} of ${most} after ${pause} s, no retry is spent` : t`not its own fault: try ${one} of ${most}, no retry is spent`;
    case "retry": return t`retry ${one} of ${most}`;
    default: return null;
  }
}

/** Why a stop has saved nothing; null where it has, or an older event does not tell. */
function loss({ saved, unsaved }: Data): string | null {
  return typeof saved !== "number" && Array.isArray(unsaved) && unsaved.length > 0 ? clausesWords(unsaved, "") : null;
}

/** Whether it is told in English alone what was lost at a stop, as of an older event. */
const saysMore = (data: Data) => (
  typeof data.saved !== "number" && typeof data.at_step === "string" && data.at_step !== "" && loss(data) === null
);

function stopped(data: Data): string | null {
  const [{ saved }, lost] = [data, loss(data)];
  if (typeof saved === "number") return t`stopped after a checkpoint at step ${saved}`;
  if (lost !== null) return t`stopped; nothing was saved, because ${lost}`;
  return data.at_step === "" ? t`stopped` : null;
}

function failed(data: Data): string | null {
  const { error, unspent, saved, held, asked } = data;
  const failure = error === undefined ? null : failureSentence(error as JobError);
  if (failure === null || saysMore(data)) return null;
  const lost = loss(data);
  const saving = typeof saved === "number" ? t`${failure}; stopped after a checkpoint at step ${saved}` : failure;
  const ended = lost === null ? saving : t`${failure}; nothing was saved, because ${lost}`;
  const told = unspent === true ? t`${ended}; it would fail the same way again, so \`max_retries\` is left alone` : ended;
  return typeof held === "string" ? t`${told}; it held ${held} at most of the ${{ asked: String(asked) }} that it asked for of each GPU` : told;
}

/** Preempted for another job, or stopped as its node is draining. */
function preempted(data: Data): string | null {
  const { stop, saved, at_step: told, resumes } = data;
  const [preemptor, lost] = [preemptorOf(data), loss(data)];
  if (stop === undefined || (typeof saved !== "number" && told !== "" && lost === null)) return null;
  const cause = stop === "drain"
    ? t`stopped because its node is draining`
    : preemptor === null ? t`preempted` : t`preempted for ${preemptor}`;
  const saving = typeof saved === "number" ? t`${cause} after a checkpoint at step ${saved}` : cause;
  const kept = lost === null ? saving : t`${cause}; nothing was saved, because ${lost}`;
  return typeof resumes === "number" ? t`${kept}; resumes from step ${resumes}` : kept;
}

function stopRequested(data: Data): string | null {
  const { reason, detail } = data;
  if (typeof reason !== "string") return null;
  const told = reason === "preempt" ? preemptionRequested(data) : null;
  if (told !== null) return told;
  const cause = CAUSES[reason];
  if (cause === undefined) return null;
  const plain = reason === "cancel" || reason === "drain" || typeof detail !== "string";
  return plain ? cause : t`${cause} (${detail})`;
}
