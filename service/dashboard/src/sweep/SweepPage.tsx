import "../styles/sweep.css";

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useParams, useSearch } from "@tanstack/react-router";
import { memo, useCallback, useDeferredValue, useMemo } from "react";

import { useAllTrials, useSweep } from "../api/sweeps";
import type { Group, Job } from "../api/types";
import { axisOf, type Key, keysOf, nameOf } from "../lib/axes";
import { type Brushes, selected as passing, withBrush } from "../lib/brushes";
import { goodness, likelyMode, metricsOf, type Mode, trialColor } from "../lib/trials";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { ALL, useBrushes } from "../ui/useBrushes";
import { useSearchChange } from "../ui/useSearchChange";
import { useTitle } from "../ui/useTitle";
import { Compare } from "./Compare";
import { CurvesPanel } from "./CurvesPanel";
import { ImportancePanel } from "./ImportancePanel";
import { Parallel } from "./Parallel";
import { Parameters } from "./Parameters";
import { Scatter } from "./Scatter";
import type { SweepSearch } from "./search";
import { Selection } from "./Selection";
import { SweepHeader } from "./SweepHeader";
import { TrialsTable } from "./TrialsTable";

/** Drawn anew for the deferred selection alone, so that a brush follows the pointer. */
const [Importance, Dots, Curves, Table] = [memo(ImportancePanel), memo(Scatter), memo(CurvesPanel), memo(TrialsTable)];

export function SweepPage() {
  const { sweepId } = useParams({ from: "/sweeps/$sweepId" });
  const search = useSearch({ from: "/sweeps/$sweepId" });
  const measure = { ...(search.metric && { metric: search.metric }), ...(search.mode && { mode: search.mode }) };
  const sweep = useSweep(sweepId, measure);
  const changeSearch = useSearchChange("/sweeps/$sweepId");
  const change = useCallback((next: SweepSearch) => changeSearch((before) => ({ ...before, ...next })), [changeSearch]);
  useTitle(sweep.data && `${sweep.data.number} ${sweep.data.name}`);
  if (sweep.data === undefined) return <Notice error={sweep.error} />;
  return (
    <>
      <Notice error={sweep.error} />
      <Sections sweep={sweep.data} search={search} onSearch={change} />
    </>
  );
}

interface Props {
  sweep: Group;
  search: SweepSearch;
  onSearch: (change: SweepSearch) => Promise<void>;
}

function Sections({ sweep, search, onSearch }: Props) {
  const { trials, more, error } = useAllTrials(sweep, search);
  const metrics = useMemo(() => metricsOf(trials), [trials]);
  const metric = sweep.metric ?? metrics[0] ?? null;
  const mode = sweep.mode ?? (metric === null ? "min" : likelyMode(metric));
  const shared = { sweep, trials, more };
  return (
    <div className="job-page">
      <SweepHeader sweep={sweep} />
      {metric === null
        ? (
            <>
              <Panel title={t`Trials compared`}>
                <p className="soft pad"><Trans>No trial has reported a metric yet.</Trans></p>
              </Panel>
              <TrialsTable {...shared} metric={null} mode={mode} selected={null} />
            </>
          )
        : <Compared {...shared} metrics={metrics} metric={metric} mode={mode} search={search} onSearch={onSearch} />}
      <Parameters sweep={sweep} />
      <Notice error={error} />
    </div>
  );
}

interface ComparedProps extends Props {
  trials: readonly Job[];
  more: number;
  metrics: readonly string[];
  metric: string;
  mode: Mode;
}

/** All views of the trials; a brush selects in all of them together. */
function Compared({ sweep, trials, more, metrics, metric, mode, search, onSearch }: ComparedProps) {
  const forms = sweep.sweep.parameters as Record<string, unknown>;
  const names = useMemo(() => Object.keys(forms), [forms]);
  const axes = useMemo(
    () => keysOf(names, trials, metric).map((key) => axisOf(trials, key, { mode, form: forms[nameOf(key)] })),
    [forms, names, trials, metric, mode],
  );
  const { colors, order } = useMemo(() => {
    const good = goodness(trials, metric, mode);
    const worstFirst = trials.map((_, at) => at).sort((a, b) => (good[a] ?? -1) - (good[b] ?? -1));
    return { colors: trials.map((trial, at) => trialColor(trial, good[at] ?? null)), order: worstFirst };
  }, [trials, metric, mode]);
  const { brushes: kept, draft, onBrush: brush } = useBrushes(search.brush, onSearch);
  const brushes = draft ?? kept;
  const selected = useMemo(() => passing(trials, axes, brushes), [trials, axes, brushes]);
  const later = useDeferredValue(selected);
  const onAxes = useCallback((change: Pick<SweepSearch, "x" | "y">) => void onSearch(change), [onSearch]);
  const shared = { trials, metric, colors, order, selected: later };
  const x: Key = search.x ?? axes[0]?.key ?? `metric:${metric}`;
  return (
    <>
      <Panel
        title={t`Trials compared`}
        tools={(
          <Compare
            metrics={metrics}
            metric={metric}
            mode={mode}
            onChange={(measure) => void onSearch({ ...measure, brush: withoutMetric(brushes, metric, measure.metric) })}
          />
        )}
      >
        <Selection
          kind="trial"
          trials={trials}
          metric={metric}
          axes={axes}
          brushes={brushes}
          selected={selected}
          onClear={(key) => brush(key === null ? ALL : withBrush(brushes, key, null), true)}
        />
        <Parallel
          kind="trial"
          trials={trials}
          axes={axes}
          colors={colors}
          order={order}
          brushes={brushes}
          selected={selected}
          onBrush={(key, one, done) => brush(withBrush(brushes, key, one), done)}
        />
      </Panel>
      <div className="sweep-pair">
        <Importance trials={trials} names={names} metric={metric} />
        <Dots
          {...shared}
          forms={forms}
          metrics={metrics}
          mode={mode}
          x={x}
          y={search.y ?? `metric:${metric}`}
          onChange={onAxes}
        />
      </div>
      <Curves {...shared} />
      <Table
        key={`${metric} ${mode}`}
        sweep={sweep}
        trials={trials}
        more={more}
        metric={metric}
        mode={mode}
        selected={later}
      />
    </>
  );
}

/** The brushes that stay when trials are compared by another metric, whose axis takes the place of the one before. */
function withoutMetric(brushes: Brushes, before: string, after: string | undefined): Brushes | undefined {
  const kept = before === after ? brushes : withBrush(brushes, `metric:${before}`, null);
  return Object.keys(kept).length > 0 ? kept : undefined;
}
