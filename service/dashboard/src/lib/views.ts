import type { JobsSearch } from "./search";

/** A search of the list under a name. */
export interface View {
  name: string;
  search: JobsSearch;
}

const keyOf = (user: string) => `torchyard-views-${user}`;

/** The views that a user has saved in this browser. */
export function savedViews(user: string): View[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(keyOf(user)) ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is View => typeof (one as View | null)?.name === "string") : [];
  } catch {
    return [];
  }
}

/** Saves the views of a user; a later one takes the place of an earlier one with its name. */
export function saveViews(user: string, views: readonly View[]): View[] {
  const kept = [...new Map(views.map((view) => [view.name, view])).values()];
  localStorage.setItem(keyOf(user), JSON.stringify(kept));
  return kept;
}
