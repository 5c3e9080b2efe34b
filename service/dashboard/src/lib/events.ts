import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { Event } from "../api/types";
import { CAUSES } from "./causes";
import { list } from "./format";

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

/** Kinds that are told in the service's own words: they are free text, or an error of the job. */
export const SAID: ReadonlySet<string> = new Set([
  "submitted", "voided", "checkpoint-failed", "inexact", "stacks", "hangs", "idle", "awaiting-abandoned",
  "preemption-abandoned", "unreachable", "part-ended", "failed",
]);

/** Words of the other kinds; null where an event lacks the details, as older ones do. */
export const WORDS: Readonly<Record<string, (data: Data) => string | null>> = {
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
  prepared: ({ nodes, address }) => (typeof address === "string"
    ? t`all ${{ count: String(nodes) }} nodes are ready; ranks meet at ${address}`
    : null),
  running,
  checkpoint,
  "checkpoint-requested": () => t`asked to write a checkpoint`,
  "stacks-requested": () => t`asked for its stacks`,
  "goes-on": ({ hung }) => (hung === undefined ? null : hung === true ? t`makes steps again` : t`its devices work again`),
  "not-joined": () => t`after a minute none of its ranks has joined a process group: if its script never does, each of them trains a copy of its own. Cancel it and run it with \`launcher: python\` (\`yard run --launcher python\`), one process with all GPUs`,
  joined: () => t`its ranks have joined a process group by now: they train together`,
  awaiting: ({ numbers }) => (Array.isArray(numbers) ? t`to be preempted for it: ${{ jobs: list(numbers.map((one) => t`job ${{ number: String(one) }}`)) }}` : null),
  preempting,
  "put-back": ({ preemptor }) => (typeof preemptor === "string"
    ? t`put back for ${preemptor}: it starts from the beginning in its turn; no retry is spent`
    : null),
  requeued,
  "stop-requested": stopRequested,
  reachable: ({ node }) => (typeof node === "string" ? t`node ${node} is back` : null),
  succeeded: ({ exit_code: code }) => (code === 0 ? t`exited with code 0` : null),
  cancelled: ({ started, saved, at_step: lost }) => (started === false
    ? t`cancelled before it started`
    : typeof saved === "number" ? t`stopped after a checkpoint at step ${saved}` : lost === "" ? t`stopped` : null),
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
  return (locale === "en" ? null : WORDS[kind]?.(data)) ?? message;
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
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

function preempting({ preemptor, checkpoint: saves }: Data): string | null {
  if (typeof preemptor !== "string") return null;
  return saves === true
    ? t`is to be preempted for ${preemptor}: asked to write a checkpoint first`
    : t`is to be preempted for ${preemptor}: can be stopped without a checkpoint, since it may start over`;
}

/** Only a preemption and a drain: the rest are errors of the job. */
function requeued({ stop, preemptor, saved, at_step: lost, resumes }: Data): string | null {
  if (stop === undefined || (typeof saved !== "number" && lost !== "")) return null;
  const cause = stop === "drain"
    ? t`stopped because its node is draining`
    : typeof preemptor === "string" && preemptor !== "" ? t`preempted for ${preemptor}` : t`preempted`;
  const kept = typeof saved === "number" ? t`${cause} after a checkpoint at step ${saved}` : cause;
  return typeof resumes === "number" ? t`${kept}; resumes from step ${resumes}` : kept;
}

function stopRequested({ reason, detail }: Data): string | null {
  if (typeof reason !== "string") return null;
  const cause = CAUSES[reason];
  if (cause === undefined) return null;
  const plain = reason === "cancel" || reason === "drain" || typeof detail !== "string";
  return plain ? cause : t`${cause} (${detail})`;
}
