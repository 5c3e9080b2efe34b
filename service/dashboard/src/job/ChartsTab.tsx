import type { Job } from "../api/types";
import { Metrics } from "./Metrics";
import { useChartSettings } from "./useChartSettings";

/** What the job reported. */
export function ChartsTab({ job }: { job: Job }) {
  const [settings, change] = useChartSettings("/jobs/$jobId/$tab");
  return <Metrics job={job} settings={settings} onChange={change} />;
}
