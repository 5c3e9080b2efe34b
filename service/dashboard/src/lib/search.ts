import type { SearchSchemaInput } from "@tanstack/react-router";

import { withTerm } from "./jobQuery";
import { type Order, orderOf } from "./orders";

export const GROUPINGS = ["user", "project", "sweep", "tag"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** What the list of jobs shows, as it stands in the address. */
export interface JobsSearch {
  q?: string;
  /** What it is grouped by. */
  by?: Grouping;
  /** Within its parts; absent: the newest first. */
  order?: Exclude<Order, "newest">;
  /** Its columns, with commas. */
  columns?: string;
}

/** What the page of a new job shows: the job that is run again, by number or id. */
export interface SubmitSearch {
  from?: number | string;
}

/** Reads the address of a new job. */
export function parseSubmit({ from }: { from?: unknown } & SearchSchemaInput): SubmitSearch {
  return (typeof from === "number" || typeof from === "string") && from !== "" ? { from } : {};
}

/** What a link to the list may say besides. */
type JobsLink = JobsSearch & { user?: string; project?: string; tag?: string };

const KEYS = ["user", "project", "tag"] as const;

const textOf = (value: unknown) => (typeof value === "number" || typeof value === "string" ? String(value) : "");

/** Reads an address; what is unknown or empty is left out. */
export function parseSearch(raw: JobsLink & SearchSchemaInput): JobsSearch {
  let q = textOf(raw.q);
  for (const key of KEYS) {
    const value = textOf(raw[key]);
    if (value !== "") q = withTerm(q, key, value);
  }
  const order = orderOf(raw.order);
  const by = GROUPINGS.find((one) => one === raw.by);
  const columns = textOf(raw.columns);
  return {
    ...(q !== "" && { q }),
    ...(by !== undefined && { by }),
    ...(order !== "newest" && { order }),
    ...(columns !== "" && { columns }),
  };
}
