import { Trans } from "@lingui/react/macro";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";

import { useSettings } from "../api/session";
import { useCounts, useFacets } from "../api/table";
import type { Facet } from "../api/types";
import { type Column, columnsOf, rememberColumns, rememberedColumns, toggled } from "../lib/columns";
import { type JobFilters, type Key, parseQuery, tabOf, withTerm } from "../lib/jobQuery";
import { type Order, orderOf } from "../lib/orders";
import { maySubmitAnywhere } from "../lib/rights";
import type { JobsSearch } from "../lib/search";
import { byFacet, byState, type Counts, type Section } from "../lib/sections";
import { later } from "../ui/later";
import { Notice } from "../ui/Notice";
import { useSearchChange } from "../ui/useSearchChange";
import { FirstJob, NothingFound } from "./Empty";
import { JobsTable } from "./JobsTable";
import { SearchBox, type SearchHandle } from "./SearchBox";
import { StateTabs } from "./StateTabs";

const TableTools = later(() => import("./TableTools"), "TableTools");
const Views = later(() => import("./Views"), "Views");

type Part = Partial<Record<keyof JobsSearch, string | undefined>>;

/** All jobs, as the address asks for them. */
export function Jobs() {
  const search = useSearch({ from: "/" });
  const navigate = useNavigate({ from: "/" });
  const change = useSearchChange("/");
  const viewer = useSettings().data;
  const user = viewer?.user.name ?? "";
  const [metrics, setMetrics] = useState<readonly string[]>([]);
  const text = search.q ?? "";
  const { filters, complaints } = useMemo(() => parseQuery(text), [text]);
  const counts = useCounts(filters);
  const facets = useFacets(search.by, filters);
  const sections = useMemo(
    () => sectionsOf(search, counts.data, facets.data, filters), [search, counts.data, facets.data, filters],
  );
  const box = useRef<SearchHandle>(null);
  const typed = () => box.current?.typed() ?? text;
  const changeBy = (partOf: (before: JobsSearch) => Part) => {
    const q = typed();
    void change((before) => (
      Object.fromEntries(Object.entries({ ...before, q, ...partOf(before) }).filter(([, value]) => value))
    ));
  };
  const set = (part: Part) => changeBy(() => part);
  // From the address as it is by then: another column may have been changed before this one was drawn.
  const toggleColumn = (column: Column) => changeBy((before) => {
    const next = toggled(columnsNow(before.columns), column).join(",");
    rememberColumns(next);
    return { columns: next };
  });
  const filter = (key: Key, value: string | null) => box.current?.replace(withTerm(typed(), key, value));
  const columns = columnsNow(search.columns);
  const order = orderOf(search.order);
  const setOrder = (next: Order) => set({ order: next === "newest" ? undefined : next });
  const open = (view: JobsSearch) => {
    box.current?.show(view.q ?? "");
    void navigate({ search: view });
  };
  return (
    <section aria-labelledby="jobs-heading">
      <div className="jobs-head">
        <h2 id="jobs-heading"><Trans>Jobs</Trans></h2>
        <StateTabs counts={counts.data} tab={tabOf(filters)} onChange={(tab) => filter("state", tab)} />
        {maySubmitAnywhere(viewer) && (
          <Link to="/submit" className="button primary small"><Trans>New job</Trans></Link>
        )}
      </div>
      <div className="jobs-tools">
        <SearchBox ref={box} value={text} metrics={metrics} complaints={complaints} onChange={(q) => set({ q })} />
        <TableTools
          by={search.by}
          order={order}
          columns={columns}
          metrics={metrics}
          onBy={(by) => set({ by })}
          onOrder={setOrder}
          onColumn={toggleColumn}
        />
        <Views user={user} search={search} onOpen={open} />
      </div>
      <Notice error={counts.error ?? facets.error} />
      {sections?.length === 0 && <Nothing searched={text !== ""} onClear={() => box.current?.replace("")} />}
      <JobsTable
        key={search.by ?? ""}
        sections={sections ?? []}
        folded={search.by !== undefined}
        columns={columns}
        order={order}
        onOrder={setOrder}
        onFilter={filter}
        onMetrics={setMetrics}
      />
    </section>
  );
}

function Nothing({ searched, onClear }: { searched: boolean; onClear: () => void }) {
  return searched ? <NothingFound onClear={onClear} /> : <FirstJob />;
}

/** The columns that the address names, or those that were chosen last. */
const columnsNow = (named: string | undefined) => columnsOf(named ?? rememberedColumns());

function sectionsOf(
  { by, order: asked }: JobsSearch, counts: Counts | undefined, facets: Facet[] | undefined, filters: JobFilters,
): Section[] | undefined {
  const order = orderOf(asked);
  if (by !== undefined) return facets && byFacet(facets, by, filters, order);
  return counts && byState(counts, filters, order);
}
