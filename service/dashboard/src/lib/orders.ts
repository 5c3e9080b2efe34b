import type { Column } from "./columns";

/** Orders of the list with their words; a minus is for the largest first. */
export const ORDERS = [
  { key: "newest", label: "newest first" },
  { key: "oldest", label: "oldest first" },
  { key: "name", label: "name, A to Z" },
  { key: "-name", label: "name, Z to A" },
  { key: "user", label: "user, A to Z" },
  { key: "-user", label: "user, Z to A" },
  { key: "-priority", label: "highest priority first" },
  { key: "priority", label: "lowest priority first" },
  { key: "-duration", label: "longest first" },
  { key: "duration", label: "shortest first" },
] as const;

export type Order = (typeof ORDERS)[number]["key"];

/** The orders that a click on a column's head gives, the first one first. */
const BY_COLUMN: Partial<Record<Column | "name", readonly [Order, Order]>> = {
  name: ["name", "-name"],
  user: ["user", "-user"],
  priority: ["-priority", "priority"],
  ran: ["-duration", "duration"],
  age: ["newest", "oldest"],
};

export function orderOf(text: unknown): Order {
  return ORDERS.find(({ key }) => key === text)?.key ?? "newest";
}

/** The order after a click on a column's head; null where the list has none by it. */
export function nextOrder(column: Column | "name", order: Order): Order | null {
  const orders = BY_COLUMN[column];
  if (orders === undefined) return null;
  return order === orders[0] ? orders[1] : orders[0];
}

/** How a column is sorted, as `aria-sort` says it; an age rises as jobs get older. */
export function sortOf(column: Column | "name", order: Order): "ascending" | "descending" | undefined {
  if (!BY_COLUMN[column]?.includes(order)) return undefined;
  return order === "oldest" || order.startsWith("-") ? "descending" : "ascending";
}
