import { useMemo } from "react";

import { useTelemetry } from "../api/jobs";
import type { Job } from "../api/types";
import { Chart } from "../charts/Chart";
import { gauges } from "../lib/telemetry";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";

/** What the machine did for the job. */
export function Telemetry({ job }: { job: Job }) {
  const telemetry = useTelemetry(job);
  const series = telemetry.data?.series;
  const shown = useMemo(() => gauges(series ?? []), [series]);
  return (
    <Panel title="Machine">
      <Notice error={telemetry.error} />
      {series !== undefined && shown.length === 0 && (
        <p className="soft pad">{job.started_at === null ? "The job has not started yet." : "Nothing was measured."}</p>
      )}
      <div className="charts small-charts">
        {shown.map((gauge) => (
          <Chart
            key={gauge.title}
            title={gauge.title}
            series={gauge.series}
            axis="time"
            sync="telemetry"
            words={gauge.words}
            height={150}
          />
        ))}
      </div>
    </Panel>
  );
}
