import { t } from "@lingui/core/macro";

import type { Node } from "../api/types";

/** What jobs are given, as this installation's users call it. */
export interface Resource {
  one: string;
  many: string;
}

const GPUS: Resource = { one: t`GPU`, many: t`GPUs` };
const SLOTS: Resource = { one: t`CPU slot`, many: t`CPU slots` };
const BOTH: Resource = { one: t`device`, many: t`devices` };

/** The name of what the nodes have: GPUs, or CPU slots, or devices where both are. */
export function resourceOf(nodes: readonly { devices: readonly Pick<Node["devices"][number], "kind">[] }[]): Resource {
  const kinds = new Set(nodes.flatMap(({ devices }) => devices.map(({ kind }) => kind)));
  if (!kinds.has("cpu")) return GPUS;
  return kinds.has("gpu") ? BOTH : SLOTS;
}

/** What a number of reserved GPUs is of: GPUs, or CPU slots where no node has any. */
export const reservable = (resource: Resource): Resource => (resource === BOTH ? GPUS : resource);

/** So many of a resource: `1 GPU`, `2 CPU slots`. */
export function counted(count: number, resource: Resource): string {
  const name = count === 1 ? resource.one : resource.many;
  return t`${count} ${name}`;
}
