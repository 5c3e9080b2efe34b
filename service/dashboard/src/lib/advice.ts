import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { Alternative } from "../api/types";
import { list } from "./format";
import { priorityLabel } from "./priorities";
import { duration } from "./time";

/** Advice on where a job of several nodes runs best. */
export interface Advice {
  advice: string;
  node: string;
  needed: number | string;
  between: readonly string[];
  pairs: number;
  rate: string;
  when: string;
  size: string;
  wait: string;
  slow: boolean;
}

export function adviceWords(params: Advice): string | null {
  const { advice, node, needed } = params;
  if (advice === "network") return network(params);
  return advice === "one-node"
    ? t`node ${node} alone could hold all of it, without a network between the ranks: take \`resources.nodes\` 1 and \`gpus\` ${needed}`
    : null;
}

function network({ between: [a = "", b = ""], rate, when, size, wait, slow }: Advice): string {
  const hook = "strategy: {name: ddp, hook: bf16}";
  const told = t`the network between ${a} and ${b} moved ${rate} at ${when}: each ${size} that a rank sends in a step take ${wait}; ranks of one node need no network`;
  return slow ? t`${told}. That is slow: one node, \`accumulate\`, or \`${hook}\` may be faster` : told;
}

/** So many devices in words. */
type Devices = (count: number) => string;

type Changed = (value: unknown, devices: Devices, change: Alternative["change"]) => string;

/** Words for a change, by the field that it changes. */
export const CHANGES: Readonly<Record<string, Changed>> = {
  held: () => t`if it is released`,
  priority: (value) => t`with priority ${{ value: priorityLabel(String(value)) }}`,
  time_limit: (value) => t`with a time limit of ${{ limit: duration(Number(value)) }}`,
  preemptible: (value) => (value === null
    ? t`if it may be stopped for others once it has a checkpoint`
    : t`if it may be stopped for others at any time`),
  restartable: () => t`if it may be stopped for others and starts again, without a checkpoint from the beginning`,
  "resources.gpus": (value, devices) => t`with only ${{ devices: devices(Number(value)) }}`,
  "resources.nodes": onNodes,
  "resources.gpu_share": (value) => t`sharing its GPUs with others, in ${{ value: String(value) }} of memory on each`,
  "resources.gpu_memory_min": (value) => t`on GPUs with ${{ value: String(value) }} of memory`,
  "resources.gpu_type": () => t`on GPUs of any type`,
  "resources.labels": () => t`on nodes without these labels`,
  "resources.cpus": (value) => t`with ${{ value: String(value) }} CPU cores`,
  "resources.memory": (value) => t`with ${{ value: String(value) }} of memory`,
};

function onNodes(value: unknown, devices: Devices, { "resources.gpus": gpus }: Alternative["change"]): string {
  const count = Number(value);
  if (gpus === undefined) return t`on one node alone`;
  const each = devices(Number(gpus));
  return count === 1 ? t`on one node with ${each}` : t`on ${count} nodes with ${each} each`;
}

/** The change of an alternative in the chosen language; null for an unknown one, and in English. */
export function changeWords(found: Alternative, devices: Devices, locale = i18n.locale): string | null {
  const { change, nodes } = found;
  if (locale === "en") return null;
  const field = "resources.nodes" in change ? "resources.nodes" : Object.keys(change)[0] ?? "";
  const words = CHANGES[field]?.(change[field], devices, change);
  if (words === undefined) return null;
  return nodes.length === 0 ? words : t`${words}, on node ${{ nodes: list(nodes) }}`;
}
