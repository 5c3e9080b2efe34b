import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { IdleDevices } from "../api/types";
import { clauses, jobsOf } from "./jobWords";
import type { Jobs } from "./reasonParams";
import { counted, resourceOf } from "./resources";

type Idle = Pick<IdleDevices, "code" | "message" | "params">;

/** Jobs that cannot be stopped, and what keeps them from it. */
interface Unstoppable extends Jobs {
  pinned: boolean;
}

/** What the service's words are made of; each kind of reason has some of them. */
interface Params extends Jobs {
  user: string;
  since: string;
  said: string;
  closed: string;
  until?: string;
  needed: number;
  units: readonly ("gpu" | "cpu")[];
  nodes: number;
  maintenance: boolean;
  name: string;
  start: string;
  unstoppable?: readonly Unstoppable[];
}

/** Words of one kind of reason, and what they cannot be without. */
type Kind = readonly [needs: readonly (keyof Params)[], words: (params: Params) => string];

const NEEDS = ["jobs", "needed", "units", "nodes"] as const;

export const IDLE: Readonly<Record<string, Kind>> = {
  "queue-paused": [["user", "since", "said"], ({ user, since, said }) => (said === ""
    ? t`the queue is paused by ${user} since ${since}`
    : t`the queue is paused by ${user} since ${since}: ${said}`)],
  closed: [["closed"], closed],
  starting: [["jobs"], (params) => t`${{ jobs: jobsOf(params) }} starts here with the next scheduling pass`],
  preempting: [["jobs"], (params) => t`${{ jobs: jobsOf(params) }} starts here once others have been stopped for it`],
  kept: [NEEDS, kept],
  reserved: [["maintenance", "name", "start", "until"], reserved],
  "too-few": [NEEDS, tooFew],
  quota: [[], () => t`the jobs that wait and could use it are over their quotas`],
  ineligible: [[], () => t`the jobs that wait are held, or wait for something else than devices`],
  unsuitable: [[], () => t`no job that waits could use it`],
  nobody: [[], () => t`no job waits for it`],
  next: [["jobs"], (params) => t`${{ jobs: jobsOf(params) }} fits here and starts with one of the next passes`],
};

const CLOSED: Readonly<Record<string, string>> = {
  draining: t`its node is draining: it takes no new jobs until an administrator resumes it`,
  unreachable: t`its node is not heard`,
  "disk-floor": t`its node is short of disk: nothing starts there until space is freed`,
  "service-disk": t`its node gets no new jobs since the service's own disk is nearly full, until an administrator frees space on it`,
};

const NONE = [[], null] as const;

/** Why devices are idle, in the chosen language; the service's own words in English, and where there are no others. */
export function idleWords({ code, message, params: given }: Idle, locale = i18n.locale): string {
  const [needs, words] = Object.hasOwn(IDLE, code) ? IDLE[code] ?? NONE : NONE;
  if (locale === "en" || words === null || needs.some((key) => given[key] === undefined)) return message;
  const params = given as unknown as Params;
  return clauses(words(params), ...(params.unstoppable ?? []).map(unstoppable));
}

function closed({ closed: why, until }: Params): string {
  const words = CLOSED[why] ?? why;
  return until === undefined ? words : t`its node takes no new jobs before its maintenance ends at ${until}`;
}

function needsOf(params: Params): string {
  const { needed, units, nodes } = params;
  const count = counted(needed, resourceOf([{ devices: units.map((kind) => ({ kind })) }]));
  const jobs = jobsOf(params);
  return nodes > 1 ? t`${jobs}, which needs ${count} on each of ${nodes} nodes` : t`${jobs}, which needs ${count}`;
}

function kept(params: Params): string {
  const [job, { until }] = [needsOf(params), params];
  return until === undefined ? t`kept for ${job}` : t`kept for ${job} and can start at about ${until}`;
}

function tooFew(params: Params): string {
  const [job, { until }] = [needsOf(params), params];
  return clauses(t`too few for ${job}`, until !== undefined && t`enough is expected to be free at about ${until}`);
}

function reserved({ maintenance, name, start, until = "" }: Params): string {
  return maintenance
    ? t`out of use for maintenance from ${start} to ${until} (${name})`
    : t`reserved from ${start} to ${until} (${name})`;
}

function unstoppable(params: Unstoppable): string {
  const jobs = jobsOf(params);
  return params.pinned
    ? t`${jobs} cannot be stopped for others, as \`preemptible: false\` is in the spec: without that line a job can be stopped once it has a checkpoint`
    : t`there is no verified checkpoint yet of ${jobs}, so nothing of it can be stopped for others`;
}
