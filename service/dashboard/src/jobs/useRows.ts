import { PAGE_SIZE, useJobs } from "../api/jobs";
import { useSweeps } from "../api/sweeps";
import { mergeRows } from "../lib/rows";
import type { JobsSearch } from "../lib/search";

/** Jobs and sweeps as one list; `page` is undefined until both are read. */
export function useRows(search: JobsSearch) {
  const [jobs, sweeps] = [useJobs(search), useSweeps(search)];
  const page = jobs.data && sweeps.data && mergeRows(jobs.data, sweeps.data, PAGE_SIZE);
  return { page, error: jobs.error ?? sweeps.error };
}
