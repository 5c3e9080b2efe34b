import { t } from "@lingui/core/macro";

import { list } from "./format";

/** Ranks that do the same, and what they do. */
export interface Alike {
  ranks: number[];
  /** How many more do it. */
  more: number;
  place: string | null;
  error: string | null;
  collective: string | null;
  doing: string | null;
}

/** What the ranks of a job do. */
export function stacksWords(groups: readonly Alike[]): string {
  return groups.length === 0 ? t`nothing of it runs` : groups.map(alike).join(t`; `);
}

function alike(group: Alike): string {
  const { collective, error, place } = group;
  const who = named(group);
  if (error !== null) return t`${who} cannot be read: ${error}`;
  const doing = group.doing === "data loading" ? t`data loading` : group.doing ?? t`native code`;
  if (collective !== null) return place === null ? t`${who}: waiting in ${collective}` : t`${who}: waiting in ${collective} (${place})`;
  return place === null ? t`${who}: in ${doing}` : t`${who}: in ${doing} (${place})`;
}

function named({ ranks, more }: Alike): string {
  const shown = list(ranks.map(String));
  return more > 0 ? t`rank ${shown} and ${more} more` : t`rank ${shown}`;
}
