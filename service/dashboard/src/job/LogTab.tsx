import type { Job } from "../api/types";
import { Logs } from "./Logs";

/** What the job wrote to its output, rank by rank. */
export function LogTab({ job }: { job: Job }) {
  return <Logs job={job} />;
}
