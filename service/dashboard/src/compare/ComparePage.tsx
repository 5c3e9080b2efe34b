import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { MOST_RUNS, useExtremes, useRuns } from "../api/compare";
import type { Job } from "../api/types";
import type { Key } from "../lib/axes";
import { ofAxes, selected as passing } from "../lib/brushes";
import { coordinatesOf } from "../lib/coordinates";
import type { Ends } from "../lib/ends";
import { idsAt, metricsOfRuns, parseRefs, placesOf, toRuns } from "../lib/runs";
import type { Axis } from "../lib/series";
import { later } from "../ui/later";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { useBrushes } from "../ui/useBrushes";
import { useSearchChange } from "../ui/useSearchChange";
import { useStableSet } from "../ui/useStableSet";
import { useTitle } from "../ui/useTitle";
import { AddRun } from "./AddRun";
import { Choice } from "./Choice";
import { Differences } from "./Differences";
import { RunsChart } from "./RunsChart";
import { RunsTable } from "./RunsTable";
import type { CompareSearch } from "./search";
import { useSettledView } from "./useSettledView";
import { View } from "./view";

const ParallelPanel = later(() => import("./ParallelPanel"), "default");
const AXES = [{ key: "step", label: t`Steps` }, { key: "time", label: t`Time` }] as const;
const SCALES = [
  { key: "linear", label: t`Linear` }, { key: "log", label: t({ message: "Log", context: "scale" }) },
] as const;
const SMOOTHING = [{ key: "off", label: t`Raw` }, { key: "on", label: t`Smooth` }] as const;
const WEIGHT = 0.9;
/** Metrics that are shown until others are chosen. */
const FIRST = 10;
const NO_ENDS: Ends = new Map();

/** Runs side by side: their curves, what differs between them, and what they came to. */
export function ComparePage() {
  const search = useSearch({ from: "/compare" });
  const refs = parseRefs(search.jobs ?? "").slice(0, MOST_RUNS);
  const found = useRuns(refs.join(","));
  const changeSearch = useSearchChange("/compare");
  const change = (next: Partial<CompareSearch>) => changeSearch((before) => ({ ...before, ...next }));
  const items = found.data?.items ?? [];
  useTitle(refs.length > 0 ? t`${{ count: refs.length }} runs compared` : t`Compare`);
  const setRefs = (next: readonly string[]) => void change({ jobs: next.join(",") || undefined });
  const missing = found.data === undefined || found.isPlaceholderData
    ? []
    : refs.filter((ref) => !items.some((job) => job.id === ref || String(job.number) === ref));
  return (
    <div className="job-page">
      <header className="compare-head">
        <h1><Trans>Compare</Trans></h1>
        <AddRun refs={refs} onChange={setRefs} />
      </header>
      <Notice error={found.error} />
      {missing.length > 0 && (
        <p className="notice" role="status">
          <Trans>No job that you may see has the number {{ numbers: missing.join(", ") }}.</Trans>
        </p>
      )}
      {refs.length === 0 && <Empty />}
      {items.length > 0 && (
        <Compared
          jobs={items}
          search={search}
          onSearch={change}
          onRemove={(job) => setRefs(refs.filter((ref) => ref !== job.id && ref !== String(job.number)))}
        />
      )}
    </div>
  );
}

function Empty() {
  return (
    <p className="panel pad soft">
      <Trans>
        Add runs by number above, or tick them in the table of jobs. A sweep’s page compares all of its trials.
      </Trans>
    </p>
  );
}

interface Props {
  jobs: Job[];
  search: CompareSearch;
  onSearch: (change: Partial<CompareSearch>) => Promise<void>;
  onRemove: (job: Job) => void;
}

function Compared({ jobs, search, onSearch, onRemove }: Props) {
  const ids = jobs.map((job) => job.id).join(",");
  const version = jobs.map((job) => `${job.version}.${job.progress?.step ?? 0}`).join(",");
  // Colours stay while values change: the charts are only made anew for other runs.
  // eslint-disable-next-line react-hooks/exhaustive-deps -- names and states are read from `jobs` where they are shown
  const runs = useMemo(() => toRuns(jobs), [ids]);
  const names = useMemo(() => metricsOfRuns(jobs), [jobs]);
  const wanted = useMemo(
    () => search.metrics === undefined ? names.slice(0, FIRST) : search.metrics.split(","), [names, search.metrics],
  );
  const [unticked, setUnticked] = useState<ReadonlySet<string>>(new Set());
  const hidden = useMemo(() => placesOf(unticked, runs), [unticked, runs]);
  const [view] = useState(() => new View());
  const range = useSettledView(view);
  const extremes = useExtremes(ids, wanted, version);
  const ends = extremes.data ?? NO_ENDS;
  const coordinates = useMemo(
    () => coordinatesOf(jobs, wanted, ends, search.axes), [jobs, wanted, ends, search.axes],
  );
  // The charts follow once a brush is let go.
  const { brushes, draft, onBrush } = useBrushes(search.brush, onSearch);
  const chosen = useMemo(() => passing(coordinates.trials, coordinates.axes, brushes), [coordinates, brushes]);
  const drawn = useMemo(
    () => (draft === null ? chosen : passing(coordinates.trials, coordinates.axes, draft)),
    [coordinates, chosen, draft],
  );
  const brushedOut = useStableSet(runs.filter(({ index }) => chosen[index] === false).map(({ index }) => index));
  const out = useMemo(() => new Set([...hidden, ...brushedOut]), [hidden, brushedOut]);
  const onAxes = (axes: Key[]) => onSearch({ axes, brush: ofAxes(brushes, axes) });
  const axis: Axis = search.axis ?? "step";
  const settings = {
    axis, logarithmic: search.scale === "log", smoothing: search.smooth === "on" ? WEIGHT : 0,
  };
  return (
    <>
      <Panel
        title={t`Curves`}
        tools={(
          <>
            <Choice
              label={t`Metrics`}
              summary={t`${{ shown: names.filter((name) => wanted.includes(name)).length }} of ${{ all: names.length }} metrics`}
              names={names}
              chosen={wanted}
              onChange={(next) => onSearch({ metrics: next.join(",") })}
            />
            <Segments
              label={t`Axis`}
              options={AXES}
              value={axis}
              onChange={(next) => {
                view.show(null);
                void onSearch({ axis: next });
              }}
            />
            <Segments
              label={t`Scale`}
              options={SCALES}
              value={search.scale ?? "linear"}
              onChange={(scale) => void onSearch({ scale })}
            />
            <Segments
              label={t`Smoothing`}
              options={SMOOTHING}
              value={search.smooth ?? "off"}
              onChange={(smooth) => void onSearch({ smooth })}
            />
            {range !== null && (
              <button type="button" className="button small" onClick={() => view.show(null)}>
                <Trans>Show all</Trans>
              </button>
            )}
          </>
        )}
      >
        {names.length === 0 && <p className="soft pad"><Trans>None of these runs has reported a metric.</Trans></p>}
        <div className="charts">
          {wanted.map((name) => (
            <RunsChart
              key={name}
              name={name}
              runs={runs}
              hidden={out}
              settings={settings}
              view={view}
              range={range}
              version={version}
            />
          ))}
        </div>
        <p className="faint compare-hint">
          <Trans>
            Drag to zoom, Shift and drag to move, double-click for all. A line is the mean of each part; with eight runs
            or fewer a band holds all of its points.
          </Trans>
        </p>
      </Panel>
      {jobs.length > 1 && (
        <ParallelPanel
          coordinates={coordinates}
          runs={runs}
          brushes={draft ?? brushes}
          selected={drawn}
          onBrush={onBrush}
          onAxes={onAxes}
        />
      )}
      <Notice error={extremes.error} />
      <RunsTable
        jobs={jobs}
        runs={runs}
        metrics={wanted}
        ends={extremes.data}
        hidden={hidden}
        brushedOut={brushedOut}
        onHidden={(places) => setUnticked(idsAt(places, runs))}
        onRemove={onRemove}
      />
      <Differences jobs={jobs} runs={runs} />
    </>
  );
}
