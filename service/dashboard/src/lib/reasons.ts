import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { Reason, Why } from "../api/types";
import { adviceWords } from "./advice";
import { CAUSES } from "./causes";
import { eventWords } from "./events";
import { list } from "./format";
import { clauses, jobsOf } from "./jobWords";
import { neverFits, outdated, refused, sortOf, unusableSlots, withoutGpus, withoutSecrets } from "./lacks";
import { preemptorOf } from "./preemptions";
import type { Params } from "./reasonParams";

/** Parameters of which some are told only where they are known. */
type Sometimes<Key extends keyof Params> = Omit<Params, Key> & Partial<Pick<Params, Key>>;

/** Words of one kind of reason, and what they cannot be without. */
type Kind = readonly [needs: readonly (keyof Params)[], words: (params: Params) => string | null];

const SHORT = ["node", "free", "needed", "jobs"] as const;

export const KINDS: Readonly<Record<string, Kind>> = {
  held: [[], () => t`is held: release it to let it start`],
  saving: [[], () => t`the checkpoint of its last attempt is still being stored`],
  resting: [[], () => t`it failed again by no fault of its own: it rests, then is tried`],
  starting: [[], () => t`starts with the next scheduling pass`],
  "no-nodes": [[], () => t`no node has registered yet: an administrator starts one with \`yard up\` or \`yard worker\``],
  paused: [["said"], ({ said }) => (said === ""
    ? t`its sweep is paused: resume it to let its trials start`
    : t`its sweep is paused (${said}): resume it to let its trials start`)],
  dependency: [["jobs", "when"], dependency],
  quota: [["kind", "whose", "limit"], quota],
  "sweep-cap": [["limit", "jobs"], (params) => t`its sweep may run ${{ limit: params.limit }} at once; running: ${{ jobs: jobsOf(params) }}`],
  "making-room": [["stopping", "starting_over", "saving"], makingRoom],
  gpus: [[...SHORT, "unit"], (params) => short(gpus(params), params)],
  cpus: [SHORT, cpus],
  memory: [SHORT, memory],
  behind: [["jobs", "node"], behind],
  reserved: [["node", "start", "name"], reserved],
  nodes: [["needed", "free"], ({ needed, free }) => t`needs ${needed} nodes at the same time; with enough free now: ${free}`],
  unstoppable: [["jobs", "recipes", "restartable"], unstoppable],
  draining: [["node"], draining],
  unreachable: [["node"], ({ node }) => t`node ${node} is not heard`],
  "disk-floor": [["node", "free", "least"], ({ node, free, least }) => t`node ${node} has ${free} of disk free: no job starts there below ${least}, so free some`],
  "service-disk": [["node"], ({ node }) => t`node ${node} gets no new jobs since the service's own disk is nearly full, until an administrator frees space on it`],
  placement: [["places"], placement],
  "never-fits": [["lack"], neverFits],
  "no-gpus": [["node"], withoutGpus],
  unusable: [["node", "unusable"], ({ node, unit, unusable }) => t`node ${node}: ${{ slots: unusableSlots(unit, unusable) }}`],
  outdated: [["node", "unknown"], outdated],
  account: [["node"], refused],
  secret: [[], withoutSecrets],
  "queue-paused": [["user", "since"], queuePaused],
  advice: [["advice"], adviceWords],
  before: [["kind", "said", "data"], ({ kind, said, data }) => t`what happened to it before: ${{ said: eventWords({ kind, message: said, data }) }}`],
  "giving-way": [["said"], givingWay],
  "files-arriving": [["node", "attempt", "number", "wait"], ({ node, attempt, number, wait }) => t`waits for files of attempt ${attempt} of job ${number} from node ${node}, no longer than ${wait} after its end`],
  "not-joined": [[], () => t`after a minute none of its ranks has joined a process group: if its script never does, each of them trains a copy of its own. Cancel it and run it with \`launcher: python\` (\`yard run --launcher python\`), one process with all GPUs`],
  unwatched: [[], () => t`no step has been reported, so it is not watched for hanging (\`hang\`): \`torchyard.report(step=step, loss=loss)\` in its script reports them`],
  end: [["end", "late", "source"], expectedEnd],
};

const NONE = [null, null] as const;

/** Words that follow "Job 7", by the state of a job that does not wait. */
export const STATES: Readonly<Record<string, Kind>> = {
  assigned: [["node"], ({ node }) => t`has what it asked for; its launch is on the way to node ${node}`],
  starting: [["node"], ({ node }) => t`is being prepared on node ${node}: code and environment`],
  running: [["node"], running],
  unreachable: [["node"], ({ node }) => t`may still be running on node ${node}, which is silent: it is not started again before the node is back, or an administrator says that it is gone`],
  succeeded: [[], () => t`succeeded`],
  stopping: [["stop"], (params) => t`is stopping: ${{ cause: stopped(params) }}`],
  cancelled: [["stop"], (params) => (params.stop === "early" ? t`was stopped early: ${{ cause: stopped(params) }}` : cancelled(params))],
};

const LINKS: Readonly<Record<string, () => string>> = {
  NVLINK: () => t`joined by NVLink`,
  PIX: () => t`behind one PCIe switch`,
  PXB: () => t`behind PCIe switches that are joined`,
  PHB: () => t`behind one PCIe host bridge`,
  NODE: () => t`on one NUMA node`,
  SYS: () => t`on several NUMA nodes`,
};

const AWAITED: Readonly<Record<string, () => string>> = {
  queued: () => t`waits`, running: () => t`runs`, failed: () => t`failed`, cancelled: () => t`cancelled`,
};

/** A reason in the chosen language; the service's own words in English, and where there are no others. */
export function reasonWords(reason: Pick<Reason, "code" | "message" | "params">, locale = i18n.locale): string {
  return (locale === "en" ? null : told(KINDS, reason)) ?? reason.message;
}

/** Why a job is where it is, in one sentence of the chosen language. */
export function summaryWords(why: Why, number: number, locale = i18n.locale): string {
  const first = why.reasons[0];
  if (locale === "en" || first === undefined) return why.summary;
  const { position: place } = why;
  if (place !== null) return t`Job ${number} waits at place ${place}: ${{ reason: reasonWords(first, locale) }}.`;
  const state = told(STATES, first);
  return state === null ? why.summary : t`Job ${number} ${state}.`;
}

function told(kinds: Readonly<Record<string, Kind>>, { code, params }: Pick<Reason, "code" | "params">): string | null {
  const [needs, words] = Object.hasOwn(kinds, code) ? kinds[code] ?? NONE : NONE;
  if (needs === null || needs.some((key) => params[key] === undefined)) return null;
  return words(params as unknown as Params);
}

function dependency({ jobs, more, when, need }: Params): string {
  const named = list(jobs.map(({ number, user, state = "" }) => {
    const doing = AWAITED[state]?.() ?? state;
    return t`job ${number} (${user}, ${doing})`;
  }));
  const all = more > 0 ? t`${named} and ${more} more` : named;
  if (all === "") return t`waits for other jobs`;
  if (when === "success") return need === "any" ? t`waits for the success of any of ${all}` : t`waits for the success of ${all}`;
  return need === "any" ? t`waits for the end of any of ${all}` : t`waits for the end of ${all}`;
}

function quota(params: Params): string {
  const { kind, whose, limit, needed, jobs } = params;
  const used = jobs.length > 0 && t`used by ${{ jobs: jobsOf(params) }}`;
  if (kind === "user-week" || kind === "project-week") {
    const left = kind === "user-week"
      ? t`user ${whose} has ${limit} device hours left of those of seven days`
      : t`project ${whose} has ${limit} device hours left of those of seven days`;
    return clauses(left, used);
  }
  const most = kind === "user-gpus"
    ? t`the quota of user ${whose} is ${limit} devices at once`
    : t`the quota of project ${whose} is ${limit} devices at once`;
  return clauses(most, used, Number(needed) > 1 && t`the job needs ${needed}`);
}

function makingRoom({ stopping, starting_over: losing, saving, due }: Params): string {
  const saved = due === ""
    ? t`${{ jobs: jobsOf(saving) }} saves its work and is then preempted`
    : t`${{ jobs: jobsOf(saving) }} saves its work, due by ${due}, and is then preempted`;
  return clauses(
    t`waits for a preemption`,
    stopping.jobs.length > 0 && t`${{ jobs: jobsOf(stopping) }} is being stopped`,
    losing.jobs.length > 0 && t`${{ jobs: jobsOf(losing) }} goes back to start over`,
    saving.jobs.length > 0 && saved,
  );
}

function gpus({ node, free, needed, unit, type, memory }: Params): string {
  if (unit !== "gpu") return t`node ${node} has ${free} CPU slots free and the job needs ${needed}`;
  const sort = sortOf(type, memory);
  return sort === ""
    ? t`node ${node} has ${free} GPUs free and the job needs ${needed}`
    : t`node ${node} has ${free} GPUs (${sort}) free and the job needs ${needed}`;
}

function cpus(params: Params): string {
  const { node, free, needed } = params;
  return short(t`node ${node} has ${free} CPU cores free and the job needs ${needed}`, params);
}

function memory(params: Params): string {
  const { node, free, needed } = params;
  return short(t`node ${node} has ${free} of memory free and the job needs ${needed}`, params);
}

function queuePaused({ user, since, said }: Params): string {
  return said === ""
    ? t`the queue is paused by ${user} since ${since}`
    : t`the queue is paused by ${user} since ${since}: ${said}`;
}

function givingWay(params: Params): string {
  const told = { preemptor: params.said, preemptor_params: params.preemptor_params };
  const preemptor = params.jobs.length > 0 ? jobsOf(params) : preemptorOf(told) ?? params.said;
  return t`saves its work, to be preempted for ${preemptor}`;
}

const SOURCES: Readonly<Record<string, string>> = {
  progress: t`the speed of its own steps`, history: t`earlier jobs like it`, limit: t`its time limit`, oracle: t`what is known of it`,
};

function expectedEnd({ end, late, source }: Params): string {
  const basis = SOURCES[source] ?? source;
  return t`ends at about ${end}, nine times of ten before ${late}, by ${basis}`;
}

function short(lack: string, params: Params): string {
  return clauses(
    lack,
    t`the rest is held by ${{ jobs: jobsOf(params) }}`,
    params.preempted && t`others will be preempted for it`,
    params.pinned && t`this job is not preemptible itself (preemptible: false), so it gets no time slices`,
    params.unusable.length > 0 && unusableSlots(params.unit, params.unusable),
  );
}

function behind(params: Sometimes<"until">): string {
  const { node, kept, until } = params;
  const jobs = jobsOf(params);
  if (node === "") return t`what is free goes to ${jobs}, first in the queue`;
  if (!kept) return t`what is free on node ${node} goes to ${jobs}, first in the queue`;
  const held = t`what is free on node ${node} is kept for ${jobs}, first in the queue`;
  return clauses(held, until !== undefined && t`they can start at about ${until}: a job whose time_limit ends before that may start there`);
}

function reserved({ node, start, end, name, maintenance, part }: Params): string {
  if (part !== null) return t`node ${node} is reserved in part (${part}) from ${start} to ${end} (${name})`;
  return maintenance
    ? t`node ${node} is out of use for maintenance from ${start} to ${end} (${name})`
    : t`node ${node} is reserved from ${start} to ${end} (${name})`;
}

function unstoppable(params: Params): string {
  const jobs = jobsOf(params);
  return clauses(
    t`there is no verified checkpoint yet of ${jobs}, so nothing of it can be stopped for others`,
    params.scripts && t`a script that calls \`run = torchyard.attach(model=model, optimizer=optimizer, loader=loader)\` writes some by itself`,
    params.recipes && t`the built-in trainer writes one by itself, and at once for \`yard checkpoint JOB\``,
    params.restartable && t`a job that may start over says \`restartable: true\` in its spec (\`yard submit --set restartable=true\`)`,
  );
}

function draining({ node, said, until }: Sometimes<"said" | "until">): string {
  if (until !== undefined) return t`node ${node} takes no new jobs before its maintenance ends at ${until}`;
  const drains = t`node ${node} is draining: it takes no new jobs until an administrator resumes it`;
  return said === undefined || said === "" ? drains : t`${drains} (${said})`;
}

function placement({ places, shared }: Params): string {
  const found = places.map(({ node, unit, indexes, link }) => {
    const on = unit === "gpu" ? t`GPU ${indexes} of node ${node}` : t`CPU slot ${indexes} of node ${node}`;
    const near = LINKS[link]?.();
    return near === undefined ? on : t`${on} (${near})`;
  });
  return clauses(t`has ${{ devices: list(found) }}`, shared && t`shared with others`);
}

function running({ node, since, first }: Sometimes<"since" | "first">): string {
  if (since === undefined) return t`has been running on node ${node}`;
  return first === undefined
    ? t`has been running on node ${node} since ${since}`
    : t`has been running on node ${node} since ${since}; it first started on ${first}`;
}

function stopped({ stop, by }: Params): string {
  const cause = stop === "" ? t`its part on one of its nodes has failed` : CAUSES[stop] ?? stop;
  return by === "" ? cause : t`${cause}, by ${by}`;
}

function cancelled({ by }: Params): string {
  return by === "" ? t`was cancelled` : t`was cancelled by ${by}`;
}
