import type { NodeDevice } from "../api/types";

/** The links between GPUs, the fastest first, as people call them. */
const LINKS = [
  ["nvlink", "NVLink"], ["pix", "one PCIe switch"], ["pxb", "PCIe switches"], ["phb", "PCIe host bridge"],
] as const;

/** How near a GPU is to the others of its node: its NUMA node, and those it reaches fastest. */
export function nearness(device: NodeDevice, all: readonly NodeDevice[]): string[] {
  const { topology } = device;
  if (topology == null) return [];
  const words = topology.numa == null ? [] : [`NUMA ${topology.numa}`];
  for (const [level, name] of LINKS) {
    const near = all.filter((other) => topology.links[other.uuid] === level).map((other) => other.index);
    if (near.length > 0) return [...words, `${name} to ${near.join(", ")}`];
  }
  return words;
}
