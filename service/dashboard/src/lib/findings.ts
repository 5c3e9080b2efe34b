import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { Finding } from "../api/types";
import { list } from "./format";

type Found = Finding | null | undefined;

/** What sentences of nodes are made of, as text; each kind of finding has some of it. */
interface Params {
  attempt: string;
  at: string;
  error: string;
  errors: string;
  folder: string;
  held: string;
  holders: string;
  home: string;
  jobs: string;
  name: string;
  others: string;
  pid: string;
  resume: string;
  said: string;
  share: string;
  started: string;
  user: string;
  uuid: string;
  xid: string;
}

/** Words of one kind of finding, and what they cannot be without. */
type Kind = readonly [needs: readonly (keyof Params)[], words: (params: Params) => string];

const PROCESS = ["pid", "name", "user", "started"] as const;

export const FINDINGS: Readonly<Record<string, Kind>> = {
  lock: [["error", "folder"], ({ error, folder }) => t`its lock cannot be opened (${error}): mend ${folder}`],
  "other-stack": [["user", "home", "pid"], ({ user, home, pid }) => t`the TorchYard of ${user} (home ${home}, process ${pid}) owns it: stop that one, or share one stack`],
  "outlives-kill": [["pid", "attempt"], ({ pid, attempt }) => t`process ${pid} of attempt ${attempt} outlives SIGKILL on it: reset the GPU, or reboot the node`],
  awaited: [[...PROCESS, "held", "others"], awaited],
  excluded: [PROCESS, (params) => t`${{ process: processOf(params) }} is not of the queue: end it`],
  "unknown-attempt": [["attempt"], ({ attempt }) => t`attempt ${attempt}, which is unknown here, runs on it: wait for its end, or end it on the node`],
  "dead-attempt": [["attempt"], ({ attempt }) => t`attempt ${attempt}, which was declared dead, runs on it: wait for its end, or end it on the node`],
  broken: [[], (params) => t`${{ faults: faultsOf(params) }}: reset the GPU, or reboot the node`],
  fault: [["said"], ({ said }) => said],
  failing: [["jobs", "resume"], ({ jobs, resume }) => t`failed under the last ${jobs} jobs: reset the GPU or reboot, then \`${resume}\` (for an administrator)`],
  "on-free-gpu": [[...PROCESS, "uuid", "held"], onFreeGpu],
  "on-held-gpu": [[...PROCESS, "uuid", "held", "holders"], onHeldGpu],
  "over-share": [["attempt", "held", "uuid", "share"], ({ attempt, held, uuid, share }) => t`attempt ${attempt} held ${held} of GPU ${uuid}, of which it has ${share}`],
};

const XIDS: Readonly<Record<string, string>> = {
  48: t`an uncorrectable memory error`,
  64: t`a row of memory that could not be replaced`,
  74: t`an NVLink error`,
  79: t`it has fallen off the bus`,
  94: t`a contained memory error`,
  95: t`an uncontained memory error`,
  119: t`its system processor does not answer`,
  120: t`its system processor failed`,
};

/** What a node has found, in the chosen language; in its own words in English, and where there are no others. */
export function findingWords(found: Found, message: string, locale = i18n.locale): string {
  const words = told(found, locale);
  if (words === null) return message;
  const command = found?.params.return;
  return command === undefined ? words : t`in quarantine: ${words}, then \`${{ command: String(command) }}\` (for an administrator)`;
}

/** The same as the reason of an outage, which is called a quarantine beside it. */
export function outageWords(found: Found, reason: string, locale = i18n.locale): string {
  const words = told(found, locale);
  if (words === null) return reason;
  const command = found?.params.return;
  return command === undefined ? words : t`${words}, then \`${{ command: String(command) }}\` (for an administrator)`;
}

export const isFinding = (found: unknown): found is Finding => typeof found === "object" && found !== null && "code" in found;

function told(found: Found, locale: string): string | null {
  if (found == null || locale === "en" || !Object.hasOwn(FINDINGS, found.code)) return null;
  const [needs, words] = FINDINGS[found.code] ?? NONE;
  if (words === null || needs.some((key) => !Object.hasOwn(found.params, key))) return null;
  const params = Object.entries(found.params).map(([key, value]) => [key, textOf(value)]);
  return words(Object.fromEntries(params) as Params);
}

const NONE = [[], null] as const;

const textOf = (value: Finding["params"][string]) => (Array.isArray(value) ? list(value) : String(value));

function processOf({ pid, name, user, started }: Params): string {
  return t`process ${pid} (${name}) of ${user}, started ${started},`;
}

function awaited(params: Params): string {
  const { held, others } = params;
  const process = processOf(params);
  return others === "0"
    ? t`${process} holds about ${held} of it from outside of the queue: jobs wait until that has ended`
    : t`${process} and ${others} more hold about ${held} of it from outside of the queue: jobs wait until that has ended`;
}

function faultsOf({ xid, at, errors }: Partial<Params>): string {
  return list([
    xid !== undefined && at !== undefined ? t`Xid ${xid} (${{ meaning: XIDS[xid] ?? "?" }}) at ${at}` : "",
    errors !== undefined ? t`uncorrectable memory errors (ECC) since its last reset: ${errors}` : "",
  ].filter((part) => part !== ""));
}

function onFreeGpu(params: Params): string {
  const { uuid, held } = params;
  const process = processOf(params);
  return held === ""
    ? t`${process} uses GPU ${uuid}, which the queue has given to nobody`
    : t`${process} uses ${held} of GPU ${uuid}, which the queue has given to nobody`;
}

function onHeldGpu(params: Params): string {
  const { uuid, held, holders } = params;
  const process = processOf(params);
  return held === ""
    ? t`${process} uses GPU ${uuid}, which the queue has given to ${holders}`
    : t`${process} uses ${held} of GPU ${uuid}, which the queue has given to ${holders}`;
}
