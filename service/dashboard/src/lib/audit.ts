/** What is shown of the audit. */
export interface AuditFilters {
  user: string;
  action: string;
  result: "all" | "done" | "refused";
  /** So many days back; null: all that is kept. */
  days: number | null;
}

interface AuditQuery {
  user?: string;
  action?: string;
  result?: "done" | "refused";
  since?: string;
}

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;

/** Filters as the service takes them, without those that let everything pass. `since` is to the minute. */
export function auditQuery({ user, action, result, days }: AuditFilters, now: number): AuditQuery {
  const query: AuditQuery = {};
  if (user.trim() !== "") query.user = user.trim();
  if (action.trim() !== "") query.action = action.trim();
  if (result !== "all") query.result = result;
  if (days !== null) query.since = new Date(Math.floor((now - days * DAY_MS) / MINUTE_MS) * MINUTE_MS).toISOString();
  return query;
}

/** Address of the table of all that fits. */
export function auditTable(filters: AuditFilters, now: number): string {
  return `/api/v1/audit?${new URLSearchParams({ ...auditQuery(filters, now), format: "csv" }).toString()}`;
}
