import { t } from "@lingui/core/macro";

import { list } from "./format";
import type { Jobs } from "./reasonParams";

/** A job's name, or that it is not for the viewer. */
export function shownName(name: string | null | undefined, readable: boolean): string {
  return readable ? name ?? "" : t`(not shown)`;
}

/** Jobs by number and owner, in words. */
export function jobsOf({ jobs, more }: Jobs): string {
  if (jobs.length === 0) return t`other jobs`;
  const named = list(jobs.map(({ number, user }) => t`job ${number} (${user})`));
  return more > 0 ? t`${named} and ${more} more` : named;
}

/** Clauses of one sentence. */
export function clauses(...parts: readonly (string | false)[]): string {
  return parts.filter((part) => part !== false && part !== "").join(t`; `);
}
