import type { Node } from "../api/types";

type Drained = Pick<Node, "state" | "drain_message" | "maintenance">;

/** Whether a node may be told to take jobs again: one that is not heard of may have been drained without a word. */
export function mayResume({ state }: Drained): boolean {
  return state !== "online";
}

/** Whether a node may be told to take no more jobs, unless it is known to take none. */
export function mayDrain({ state, drain_message: why, maintenance }: Drained): boolean {
  return state !== "draining" && why == null && maintenance == null;
}
