import { t } from "@lingui/core/macro";
import { useMemo, useState } from "react";

import { useAttempts, useTelemetry, useTelemetryDetail } from "../api/jobs";
import type { Attempt, Job, Series } from "../api/types";
import { Chart } from "../charts/Chart";
import type { Flag } from "../charts/options";
import { type Range, splice } from "../lib/buckets";
import { firstTime } from "../lib/series";
import { gauges } from "../lib/telemetry";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { useDetailRange } from "./useDetailRange";

const CLOCKS = [{ key: "time", label: t`Time` }, { key: "wall", label: t`Wall` }] as const;

/** What the machine did for the job: its devices, processors and memory, with the starts of attempts. */
export function Telemetry({ job }: { job: Job }) {
  const [clock, setClock] = useState<"time" | "wall">("time");
  const [zoom, setZoom] = useState<Range | null>(null);
  const telemetry = useTelemetry(job);
  const attempts = useAttempts(job).data;
  const whole = telemetry.data?.series;
  const origin = useMemo(() => firstTime(whole ?? []), [whole]);
  const detail = useTelemetryDetail(job, useDetailRange(zoom, clock === "wall" ? 0 : origin));
  const series = useMemo(() => (
    zoom !== null && whole && detail.data ? splice(whole, detail.data, "time") : whole
  ), [whole, detail.data, zoom]);
  const shown = useMemo(() => gauges(series ?? []), [series]);
  const flags = useMemo(
    () => starts(attempts ?? [], series ?? [], clock === "wall" ? 0 : origin), [attempts, series, clock, origin],
  );
  const change = (next: "time" | "wall") => {
    setZoom(null);
    setClock(next);
  };
  const tools = shown.length > 0 && <Segments label={t`Axis`} options={CLOCKS} value={clock} onChange={change} />;
  return (
    <Panel title={t`Machine`} tools={tools}>
      <Notice error={telemetry.error ?? detail.error} />
      {series !== undefined && shown.length === 0 && (
        <p className="soft pad">
          {job.started_at === null ? t`The job has not started yet.` : t`Nothing was measured.`}
        </p>
      )}
      <div className="charts small-charts">
        {shown.map((gauge) => (
          <Chart
            key={gauge.title}
            title={gauge.title}
            series={gauge.series}
            axis="time"
            clock={clock === "wall"}
            origin={origin}
            flags={flags}
            sync={`telemetry-${clock}`}
            zoom={zoom}
            onZoom={setZoom}
            words={gauge.words}
            height={170}
          />
        ))}
      </div>
    </Panel>
  );
}

/** The starts of all attempts but the first, within what was measured. */
function starts(attempts: readonly Attempt[], series: readonly Series[], origin: number): Flag[] {
  if (series.length === 0) return [];
  return attempts.flatMap(({ number, started_at: at }) => (
    number > 1 && at !== null ? [{ x: Date.parse(at) / 1000 - origin, label: t`attempt ${{ attempt: number }}` }] : []
  ));
}
