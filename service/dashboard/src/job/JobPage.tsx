import { useParams } from "@tanstack/react-router";

import { useEvents, useJob } from "../api/jobs";
import type { Job } from "../api/types";
import { isFinal } from "../lib/states";
import { Notice } from "../ui/Notice";
import { Checkpoints } from "./Checkpoints";
import { Events } from "./Events";
import { Failure } from "./Failure";
import { Header } from "./Header";
import { Logs } from "./Logs";
import { Metrics } from "./Metrics";
import { Outputs } from "./Outputs";
import { Spec } from "./Spec";
import { Telemetry } from "./Telemetry";
import { Timeline } from "./Timeline";
import { WhyBox } from "./WhyBox";

export function JobPage() {
  const { jobId } = useParams({ from: "/jobs/$jobId" });
  const job = useJob(jobId);
  if (job.data === undefined) return <Notice error={job.error} />;
  return (
    <>
      <Notice error={job.error} />
      <Rooms key={job.data.id} job={job.data} />
    </>
  );
}

function Rooms({ job }: { job: Job }) {
  const events = useEvents(job);
  const unexplained = job.state === "queued" || job.state === "unreachable" || (job.state === "failed" && !job.error);
  return (
    <div className="job-page">
      <Header job={job} />
      {job.state === "failed" && <Failure job={job} />}
      {unexplained && <WhyBox job={job} />}
      <Timeline events={events.data?.items ?? []} final={isFinal(job.state)} />
      <Metrics job={job} />
      <Logs job={job} />
      <Checkpoints job={job} />
      <Outputs job={job} />
      <Telemetry job={job} />
      <Events events={events.data?.items ?? []} />
      <Spec spec={job.spec} />
    </div>
  );
}
