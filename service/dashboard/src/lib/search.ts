import { TABS, type TabKey } from "./states";

/** The filters of the list, as they stand in the address. */
export interface JobsSearch {
  tab?: TabKey;
  user?: string;
  project?: string;
  tag?: string;
  q?: string;
  cursor?: string;
}

const WORDS = ["user", "project", "tag", "q", "cursor"] as const;

function isTab(value: unknown): value is TabKey {
  return TABS.some((tab) => tab.key === value);
}

/** Reads filters from an address; what is unknown or empty is left out. */
export function parseSearch(raw: Record<string, unknown>): JobsSearch {
  const search: JobsSearch = {};
  if (isTab(raw.tab) && raw.tab !== "all") search.tab = raw.tab;
  for (const word of WORDS) {
    const value = raw[word];
    if (typeof value === "number" || (typeof value === "string" && value !== "")) search[word] = String(value);
  }
  return search;
}

/** A changed filter starts again at the newest job. */
export function withFilter(search: JobsSearch, change: Record<string, string | undefined>): JobsSearch {
  return parseSearch({ ...search, cursor: undefined, ...change });
}

export function hasFilters(search: JobsSearch): boolean {
  return Object.keys(search).some((key) => key !== "cursor");
}
