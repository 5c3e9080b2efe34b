import { t } from "@lingui/core/macro";

import type { Event } from "../api/types";
import { priorityLabel } from "./priorities";

type Data = Event["data"];

/** For whom a job gives its devices away, by what an event tells; null where it does not, as of a job that drains. */
export function preemptorOf({ preemptor, preemptor_params: params }: Data): string | null {
  if (typeof preemptor !== "string" || preemptor === "") return null;
  const known = typeof params === "object" && params !== null ? params as Data : {};
  const name = nameOf(known) ?? preemptor;
  return known.kept === true && name !== preemptor ? t`${name}, for which its devices are kept` : name;
}

/** An older event, or one of a newer service, has nothing that is known here. */
function nameOf({ number, user, priority, name, maintenance }: Data): string | null {
  if (typeof number === "number" && typeof user === "string") {
    return t`job ${{ number: String(number) }} (${user}), ${{ priority: priorityLabel(String(priority)) }}`;
  }
  if (typeof name !== "string") return null;
  return maintenance === true ? t`maintenance ${name}` : t`reservation ${name}`;
}

export function putBack(data: Data): string | null {
  const preemptor = preemptorOf(data);
  return preemptor === null
    ? null
    : t`put back for ${preemptor}: it starts from the beginning in its turn; no retry is spent`;
}

export function preempting(data: Data): string | null {
  const preemptor = preemptorOf(data);
  if (preemptor === null) return null;
  return data.checkpoint === true
    ? t`is to be preempted for ${preemptor}: asked to write a checkpoint first`
    : t`is to be preempted for ${preemptor}: can be stopped without a checkpoint, since it may start over`;
}

export function preemptionAbandoned(data: Data): string | null {
  const preemptor = preemptorOf(data);
  if (preemptor === null) return null;
  const told = notPreempted(preemptor, data.why, data.allowed_s);
  return data.leaves === true ? t`is preempted for nobody: ${told}` : t`keeps its devices: ${told}`;
}

function notPreempted(preemptor: string, why: unknown, allowed: unknown): string {
  if (why === "gone") return t`${preemptor} no longer waits`;
  if (why === "moved") return t`${preemptor} would not start there any more`;
  return typeof allowed === "number"
    ? t`no checkpoint was verified within ${allowed} s: ${preemptor} does not get them, nor does anybody soon`
    : t`another job cannot be preempted for ${preemptor}`;
}

/** Null for an older event, of which there are the service's words alone. */
export function preemptionRequested(data: Data): string | null {
  const { put_back: back, step } = data;
  const preemptor = preemptorOf(data);
  if (preemptor === null) return null;
  if (back === true) return t`it was put back for ${preemptor}`;
  return typeof step === "number"
    ? t`it was preempted for ${preemptor}: its checkpoint of step ${step} is verified`
    : t`it was preempted for ${preemptor}: it may start over and has no checkpoint`;
}
