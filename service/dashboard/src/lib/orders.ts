import { t } from "@lingui/core/macro";

import type { Column } from "./columns";

/** Orders of the list with their words; a minus is for the largest first. */
export const ORDERS = [
  { key: "newest", label: t`newest first` },
  { key: "oldest", label: t`oldest first` },
  { key: "name", label: t`name, A to Z` },
  { key: "-name", label: t`name, Z to A` },
  { key: "user", label: t`user, A to Z` },
  { key: "-user", label: t`user, Z to A` },
  { key: "-priority", label: t`highest priority first` },
  { key: "priority", label: t`lowest priority first` },
  { key: "-duration", label: t`longest first` },
  { key: "duration", label: t`shortest first` },
] as const;

/** Orders by a metric, with their words: before a colon and the metric's name. */
export const METRIC_ORDERS = [
  { key: "-max", words: (name: string) => t`largest ${name} first` },
  { key: "min", words: (name: string) => t`smallest ${name} first` },
  { key: "-metric", words: (name: string) => t`newest ${name}, largest first` },
  { key: "metric", words: (name: string) => t`newest ${name}, smallest first` },
] as const;

type MetricOrder = `${(typeof METRIC_ORDERS)[number]["key"]}:${string}`;
export type Order = (typeof ORDERS)[number]["key"] | MetricOrder;

/** The orders that a click on a column's head gives, the first one first. */
const BY_COLUMN: Partial<Record<Column | "name", readonly [Order, Order]>> = {
  name: ["name", "-name"],
  user: ["user", "-user"],
  priority: ["-priority", "priority"],
  ran: ["-duration", "duration"],
  age: ["newest", "oldest"],
};

export function orderOf(text: unknown): Order {
  if (metricOf(text) !== null) return text as MetricOrder;
  return ORDERS.find(({ key }) => key === text)?.key ?? "newest";
}

/** The metric that an order goes by; null if it goes by something else. */
export function metricOf(order: unknown): string | null {
  const [key, name] = typeof order === "string" ? order.split(/:(.*)/s) : [];
  return METRIC_ORDERS.some((one) => one.key === key) && name !== undefined && name !== "" ? name : null;
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
