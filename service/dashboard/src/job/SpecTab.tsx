import type { Job } from "../api/types";
import { Spec } from "./Spec";

/** What was submitted. */
export function SpecTab({ job }: { job: Job }) {
  return <Spec spec={job.spec} />;
}
