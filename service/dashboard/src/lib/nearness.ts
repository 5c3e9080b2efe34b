import { t } from "@lingui/core/macro";

import type { NodeDevice } from "../api/types";

/** The links between GPUs, the fastest first, as people call them. */
const LINKS = [
  ["nvlink", "NVLink"], ["pix", t`one PCIe switch`], ["pxb", t`PCIe switches`], ["phb", t`PCIe host bridge`],
] as const;

/** How near a GPU is to the others of its node: its NUMA node, and those it reaches fastest. */
export function nearness(device: NodeDevice, all: readonly NodeDevice[]): string[] {
  const { topology } = device;
  if (topology == null) return [];
  const words = topology.numa == null ? [] : [`NUMA ${topology.numa}`];
  for (const [level, name] of LINKS) {
    const near = all.filter((other) => topology.links[other.uuid] === level).map((other) => other.index);
    const others = near.join(", ");
    if (near.length > 0) return [...words, t`${name} to ${others}`];
  }
  return words;
}
