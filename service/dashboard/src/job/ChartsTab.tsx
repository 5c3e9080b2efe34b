import type { Job } from "../api/types";
import { Metrics } from "./Metrics";

/** What the job reported. */
export function ChartsTab({ job }: { job: Job }) {
  return <Metrics job={job} />;
}
