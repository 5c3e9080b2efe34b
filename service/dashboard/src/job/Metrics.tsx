import { useMemo, useState } from "react";

import { useAttempts, useDetail, useMetrics } from "../api/jobs";
import type { Attempt, Job, Series } from "../api/types";
import { Chart } from "../charts/Chart";
import type { Flag } from "../charts/options";
import { plural } from "../lib/format";
import { type Range, splice } from "../lib/buckets";
import { type Axis, firstTime, groupSeries, placeOfStep } from "../lib/series";
import { isFinal } from "../lib/states";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { useSettled } from "../ui/useSettled";

const AXES = [{ key: "step", label: "Steps" }, { key: "time", label: "Time" }] as const;
const SCALES = [{ key: "linear", label: "Linear" }, { key: "log", label: "Log" }] as const;
const SMOOTHING = [{ key: "off", label: "Raw" }, { key: "on", label: "Smooth" }] as const;
const WEIGHT = 0.9;
/** How long a zoom rests before its points are read, in milliseconds. */
const SETTLE_MS = 150;
/** Part of a zoom's width that is read on either side of it, so that lines lead out of sight. */
const MARGIN = 0.1;

/** One chart for each group of metrics, growing while the job runs. */
export function Metrics({ job }: { job: Job }) {
  const [axis, setAxis] = useState<Axis>("step");
  const [zoom, setZoom] = useState<Range | null>(null);
  const metrics = useMetrics(job, axis);
  const attempts = useAttempts(job);
  const [scale, setScale] = useState<"linear" | "log">("linear");
  const [smoothing, setSmoothing] = useState<"on" | "off">("off");
  const origin = useMemo(() => firstTime(metrics.data?.series ?? []), [metrics.data?.series]);
  const shift = axis === "time" ? origin : 0;
  const detail = useDetail(job, axis, useDetailRange(zoom, shift), metrics.data?.generation ?? 0);
  const series = useMemo(() => {
    const whole = metrics.data?.series;
    return zoom !== null && whole && detail.data ? splice(whole, detail.data, axis) : whole;
  }, [metrics.data?.series, detail.data, zoom, axis]);
  const changeAxis = (next: Axis) => {
    setZoom(null);
    setAxis(next);
  };
  const groups = useMemo(() => groupSeries(series ?? []), [series]);
  const flags = useMemo(() => resumes(attempts.data ?? [], series ?? [], axis), [attempts.data, series, axis]);
  const tools = groups.length > 0 && (
    <>
      <Segments label="Axis" options={AXES} value={axis} onChange={changeAxis} />
      <Segments label="Scale" options={SCALES} value={scale} onChange={setScale} />
      <Segments label="Smoothing" options={SMOOTHING} value={smoothing} onChange={setSmoothing} />
    </>
  );
  return (
    <Panel title="Metrics" tools={tools}>
      <Notice error={metrics.error ?? detail.error} />
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
            origin={origin}
            sync={`metrics-${axis}`}
            zoom={zoom}
            onZoom={setZoom}
          />
        ))}
      </div>
    </Panel>
  );
}

/** The range to read for a zoom that has settled: a little more than is shown, on the axis of the service. */
function useDetailRange(zoom: Range | null, shift: number): Range | null {
  const settled = useSettled(zoom, SETTLE_MS);
  return useMemo(() => {
    if (settled === null) return null;
    const margin = (settled.end - settled.start) * MARGIN;
    return { start: settled.start - margin + shift, end: settled.end + margin + shift };
  }, [settled, shift]);
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
