import { useNavigate, useSearch } from "@tanstack/react-router";

import { useCounts } from "../api/jobs";
import { hasFilters, type JobsSearch, withFilter } from "../lib/search";
import { Notice } from "../ui/Notice";
import { Filters } from "./Filters";
import { JobsTable } from "./JobsTable";
import { FirstJob, NothingFound } from "./Empty";
import { useRows } from "./useRows";

/** All jobs, filtered by the address. */
export function Jobs() {
  const search = useSearch({ from: "/" });
  const navigate = useNavigate({ from: "/" });
  const { page, error } = useRows(search);
  const counts = useCounts(search);
  const set = (next: JobsSearch) => void navigate({ search: next, replace: true });
  const change = (part: Record<string, string | undefined>) => set(withFilter(search, part));
  return (
    <section aria-labelledby="jobs-heading">
      <h2 className="page-title" id="jobs-heading">Jobs</h2>
      <Filters search={search} counts={counts.data} onChange={change} />
      <Notice error={error} />
      {page?.rows.length === 0 && (hasFilters(search) || search.cursor !== undefined
        ? <NothingFound onClear={() => set({})} />
        : <FirstJob />)}
      {page !== undefined && page.rows.length > 0 && <JobsTable rows={page.rows} onFilter={change} />}
      <nav className="pager" aria-label="Pages">
        {search.cursor !== undefined && (
          <button type="button" className="button" onClick={() => change({})}>Newest</button>
        )}
        {page?.next && (
          <button
            type="button"
            className="button"
            onClick={() => void navigate({ search: { ...search, cursor: page.next ?? "" } })}
          >
            Older
          </button>
        )}
      </nav>
    </section>
  );
}
