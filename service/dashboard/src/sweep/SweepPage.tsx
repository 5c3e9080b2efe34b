import { useParams } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { type Measure, useSweep, useTrials } from "../api/sweeps";
import type { Group } from "../api/types";
import { likelyMode, metricsOf } from "../lib/trials";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useTitle } from "../ui/useTitle";
import { Compare } from "./Compare";
import { Parameters } from "./Parameters";
import { Pictures } from "./Pictures";
import { SweepHeader } from "./SweepHeader";
import { TrialsTable } from "./TrialsTable";

export function SweepPage() {
  const { sweepId } = useParams({ from: "/sweeps/$sweepId" });
  const [measure, setMeasure] = useState<Measure>({});
  const sweep = useSweep(sweepId, measure);
  useTitle(sweep.data && `${sweep.data.number} ${sweep.data.name}`);
  if (sweep.data === undefined) return <Notice error={sweep.error} />;
  return (
    <>
      <Notice error={sweep.error} />
      <Sections sweep={sweep.data} measure={measure} onMeasure={setMeasure} />
    </>
  );
}

interface Props {
  sweep: Group;
  measure: Measure;
  onMeasure: (measure: Measure) => void;
}

function Sections({ sweep, measure, onMeasure }: Props) {
  const found = useTrials(sweep, measure);
  const trials = useMemo(() => found.data?.pages.flatMap((page) => page.items) ?? [], [found.data]);
  const metrics = useMemo(() => metricsOf(trials), [trials]);
  const metric = sweep.metric ?? metrics[0] ?? null;
  const mode = sweep.mode ?? (metric === null ? "min" : likelyMode(metric));
  return (
    <div className="job-page">
      <SweepHeader sweep={sweep} />
      <Panel
        title="Trials compared"
        tools={metric !== null && <Compare metrics={metrics} metric={metric} mode={mode} onChange={onMeasure} />}
      >
        {metric === null
          ? <p className="soft pad">No trial has reported a metric yet.</p>
          : <Pictures sweep={sweep} trials={trials} metric={metric} mode={mode} />}
      </Panel>
      <TrialsTable
        key={`${metric ?? ""} ${mode}`}
        sweep={sweep}
        trials={trials}
        metric={metric}
        mode={mode}
        onMore={found.hasNextPage ? () => void found.fetchNextPage() : null}
      />
      <Parameters sweep={sweep} />
      <Notice error={found.error} />
    </div>
  );
}
