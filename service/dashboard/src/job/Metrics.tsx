import { useMemo, useState } from "react";

import { useAttempts, useMetrics } from "../api/jobs";
import type { Attempt, Job, Series } from "../api/types";
import { Chart } from "../charts/Chart";
import type { Flag } from "../charts/options";
import { plural } from "../lib/format";
import { type Axis, groupSeries, placeOfStep } from "../lib/series";
import { isFinal } from "../lib/states";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";

const AXES = [{ key: "step", label: "Steps" }, { key: "time", label: "Time" }] as const;
const SCALES = [{ key: "linear", label: "Linear" }, { key: "log", label: "Log" }] as const;
const SMOOTHING = [{ key: "off", label: "Raw" }, { key: "on", label: "Smooth" }] as const;
const WEIGHT = 0.9;

/** One chart for each group of metrics, growing while the job runs. */
export function Metrics({ job }: { job: Job }) {
  const metrics = useMetrics(job);
  const attempts = useAttempts(job);
  const [axis, setAxis] = useState<Axis>("step");
  const [scale, setScale] = useState<"linear" | "log">("linear");
  const [smoothing, setSmoothing] = useState<"on" | "off">("off");
  const series = metrics.data?.series;
  const groups = useMemo(() => groupSeries(series ?? []), [series]);
  const flags = useMemo(() => resumes(attempts.data ?? [], series ?? [], axis), [attempts.data, series, axis]);
  const tools = groups.length > 0 && (
    <>
      <Segments label="Axis" options={AXES} value={axis} onChange={setAxis} />
      <Segments label="Scale" options={SCALES} value={scale} onChange={setScale} />
      <Segments label="Smoothing" options={SMOOTHING} value={smoothing} onChange={setSmoothing} />
    </>
  );
  return (
    <Panel title="Metrics" tools={tools}>
      <Notice error={metrics.error} />
      <Lost attempts={attempts.data ?? []} />
      {metrics.data !== undefined && groups.length === 0 && <NoMetrics over={isFinal(job.state)} />}
      <div className="charts">
        {groups.map((group) => (
          <Chart
            key={group.name}
            title={group.name}
            series={group.series}
            axis={axis}
            logarithmic={scale === "log"}
            smoothing={smoothing === "on" ? WEIGHT : 0}
            flags={flags}
          />
        ))}
      </div>
    </Panel>
  );
}

/** How many records have no point. */
function Lost({ attempts }: { attempts: readonly Attempt[] }) {
  const lost = attempts.reduce((sum, attempt) => sum + attempt.dropped_records, 0);
  if (lost === 0) return null;
  return (
    <p className="warned" role="status">
      {plural(lost, "record")} of metrics lost, mostly because the disk was full: points are missing from the curves.
    </p>
  );
}

function NoMetrics({ over }: { over: boolean }) {
  return (
    <p className="soft pad">
      {over ? "This job reported no metrics." : "No metrics yet."} A script reports them with{" "}
      <code>torchyard.report(step=step, loss=loss)</code>.
    </p>
  );
}

/** Where later attempts took over from a checkpoint. */
function resumes(attempts: readonly Attempt[], series: readonly Series[], axis: Axis): Flag[] {
  return attempts.flatMap((attempt) => {
    if (attempt.resumed_from_step === null) return [];
    const x = placeOfStep(series, attempt.resumed_from_step, axis);
    return x === null ? [] : [{ x, label: `attempt ${attempt.number}` }];
  });
}
