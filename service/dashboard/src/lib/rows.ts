import type { Group, Job } from "../api/types";

/** A row of the list: a job of its own, or a whole sweep. */
export type Row = { kind: "job"; number: number; job: Job } | { kind: "sweep"; number: number; sweep: Group };

interface Page<Item> {
  items: readonly Item[];
  next?: string | null;
}

/** One page of both, the newest first. The cursor goes on after its last row in both lists. */
export function mergeRows(jobs: Page<Job>, sweeps: Page<Group>, size: number): { rows: Row[]; next: string | null } {
  const all: Row[] = [
    ...jobs.items.map((job): Row => ({ kind: "job", number: job.number, job })),
    ...sweeps.items.map((sweep): Row => ({ kind: "sweep", number: sweep.number, sweep })),
  ].sort((a, b) => b.number - a.number);
  const rows = all.slice(0, size);
  const more = all.length > size || Boolean(jobs.next) || Boolean(sweeps.next);
  return { rows, next: more ? String(rows.at(-1)?.number ?? 0) : null };
}
