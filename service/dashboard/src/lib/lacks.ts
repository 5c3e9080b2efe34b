import { t } from "@lingui/core/macro";

import type { Finding } from "../api/types";
import { findingWords } from "./findings";
import { list } from "./format";

/** Why a node, or all of them, could never hold a job. */
export interface Lacking {
  lack: string;
  node: string;
  found: number | string;
  needed: number | string;
  unit: string;
  type: string;
  memory: string;
  labels: readonly string[];
}

const LACKS: Readonly<Record<string, (params: Lacking) => string>> = {
  account: ({ node }) => t`node ${node} runs no jobs of this user, for want of a UNIX account`,
  labels: ({ node, labels }) => t`node ${node} has no label ${{ labels: list(labels) }}`,
  network: ({ node }) => t`node ${node} cannot give a job a network of its own: its worker is not root, or too old, or the kernel refuses`,
  "no-gpus": withoutGpus,
  slots,
  mig: ({ node, found, needed }) => t`node ${node} has ${found} whole GPUs, the job needs ${needed}: of MIG instances a job gets one on a node, since CUDA shows a process no more`,
  cpus: ({ node, found, needed }) => t`node ${node} has ${found} CPU cores, the job needs ${needed}`,
  memory: ({ node, found, needed }) => t`node ${node} has ${found} of memory, the job needs ${needed}`,
  nodes: ({ found, needed }) => t`the job needs ${needed} nodes of one sort, and at most ${found} of one could hold a part of it`,
};

/** Why a job could never run; null for a kind that is not known here. */
export function neverFits(params: Lacking): string | null {
  return LACKS[params.lack]?.(params) ?? null;
}

export function withoutGpus({ node }: Pick<Lacking, "node">): string {
  return t`node ${node} has no GPUs, and NCCL needs them`;
}

function slots({ node, found, needed, unit, type, memory }: Lacking): string {
  if (unit !== "gpu") return t`node ${node} has ${found} CPU slots, the job needs ${needed}`;
  const sort = sortOf(type, memory);
  return sort === ""
    ? t`node ${node} has ${found} GPUs, the job needs ${needed}`
    : t`node ${node} has ${found} GPUs (${sort}), the job needs ${needed}`;
}

/** The sort of GPU that a job asks for; empty where any will do. */
export function sortOf(type = "", memory = ""): string {
  return list([type, memory && t`at least ${memory}`].filter((part) => part !== ""));
}

/** A slot that cannot be used, and why: in the words of who found that, and what those are made of if it is known. */
export interface Unusable {
  index: number;
  said: string;
  finding?: Finding;
}

/** Slots of a node that cannot be used. */
export function unusableSlots(unit: string, slots: readonly Unusable[]): string {
  return list(slots.map(({ index, said: own, finding }) => {
    const said = findingWords(finding, own);
    return unit === "gpu" ? t`GPU ${index} cannot be used (${said})` : t`CPU slot ${index} cannot be used (${said})`;
  }));
}

const UNKNOWN: Readonly<Record<string, string>> = { "shared GPUs": t`shared GPUs`, secrets: t`secrets` };

/** A node whose worker is too old. */
export function outdated({ node, unknown }: { node: string; unknown: string }): string {
  const what = UNKNOWN[unknown] ?? unknown;
  return t`needs a worker that knows ${what}: node ${node} runs an older one, until an administrator upgrades it`;
}

/** Why a node runs no jobs of a user. */
interface Refused {
  refusal?: string;
  node: string;
  user: string;
  account: string;
}

const REFUSALS: Readonly<Record<string, (params: Refused) => string>> = {
  none: ({ node, user }) => t`${user} has no UNIX account, so node ${node} will run none of their jobs: an administrator names it with \`yard users set ${user} --unix-user ACCOUNT\`, or starts the worker with TORCHYARD_ONE_TRUST_DOMAIN=1, if all users may act as the worker's own UNIX user`,
  absent: ({ node, user, account }) => t`the UNIX account ${account} of ${user} does not exist on node ${node}, or may not enter the attempts there: an administrator creates it there, lets it in (the worker's log says where), or names another with \`yard users set ${user} --unix-user ACCOUNT\``,
  foreign: ({ node, user, account }) => t`the worker on node ${node} may not become ${account}, the UNIX account of ${user}: an administrator runs it as root, or with TORCHYARD_ONE_TRUST_DOMAIN=1, if all users may act as the worker's own UNIX user`,
  root: ({ node, user }) => t`jobs of ${user} would run as root on node ${node}, which its worker refuses: an administrator names another account with \`yard users set ${user} --unix-user ACCOUNT\`, or starts the worker with TORCHYARD_ROOT_JOBS=1`,
  untold: ({ node, user, account }) => t`node ${node} has not told yet whether it can run jobs as ${account}, the UNIX account of ${user}`,
  deactivated: ({ user }) => t`${user} is deactivated, so no node starts their jobs: an administrator cancels them, or ends that with \`yard users set ${user} --active\``,
};

export function refused(params: Refused): string | null {
  const { refusal, node } = params;
  return refusal === undefined ? t`node ${node} runs no jobs of this user` : REFUSALS[refusal]?.(params) ?? null;
}

/** Secrets that a job names and that are not there. */
export function withoutSecrets({ names = [], project }: { names?: readonly string[]; project: string }): string {
  if (names.length === 0) return t`a secret that it names is gone`;
  const absent = list(names);
  const commands = list(names.map((name) => `\`yard secrets set ${name}\``));
  return t`the job's owner and project ${project} have no secret ${absent}: add it with ${commands}`;
}
