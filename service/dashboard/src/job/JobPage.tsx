import { useParams } from "@tanstack/react-router";
import { useMemo } from "react";

import { useEvents, useJob } from "../api/jobs";
import type { Event, Job } from "../api/types";
import { jobTitle } from "../lib/title";
import { Notice } from "../ui/Notice";
import { useTitle } from "../ui/useTitle";
import { Checkpoints } from "./Checkpoints";
import { Discarded } from "./Discard";
import { Events } from "./Events";
import { Failure } from "./Failure";
import { Header } from "./Header";
import { Logs } from "./Logs";
import { Metrics } from "./Metrics";
import { Outputs } from "./Outputs";
import { Spec } from "./Spec";
import { Telemetry } from "./Telemetry";
import { Timeline } from "./Timeline";
import { Stacks } from "./Stacks";
import { Warnings } from "./Warnings";
import { WhyBox } from "./WhyBox";

export function JobPage() {
  const { jobId } = useParams({ from: "/jobs/$jobId" });
  const job = useJob(jobId);
  useTitle(job.data && jobTitle(job.data));
  if (job.data === undefined) return <Notice error={job.error} />;
  return (
    <>
      <Notice error={job.error} />
      <Sections key={job.data.id} job={job.data} />
    </>
  );
}

function Sections({ job }: { job: Job }) {
  const pages = useEvents(job);
  const events = useMemo(() => pages.data?.pages.flatMap((page) => page.items) ?? [], [pages.data]);
  return (
    <div className="job-page">
      <Header job={job} />
      <Warnings job={job} />
      {job.state === "failed" && <Failure job={job} />}
      {job.state !== "succeeded" && !(job.state === "failed" && job.error) && <WhyBox job={job} />}
      <Timeline events={events} job={job} />
      <Stacks job={job} hangs={hangs(job, events)} />
      {job.discarded_at == null ? <Written job={job} /> : <Discarded at={job.discarded_at} />}
      <Telemetry job={job} />
      <Events events={events} more={pages.hasNextPage} onMore={() => void pages.fetchNextPage()} />
      <Spec spec={job.spec} />
    </div>
  );
}

function Written({ job }: { job: Job }) {
  return (
    <>
      <Metrics job={job} />
      <Logs job={job} />
      <Checkpoints job={job} />
      <Outputs job={job} />
    </>
  );
}

/** Whether the job is taken for hanging, as its events tell. */
function hangs(job: Job, events: readonly Event[]): boolean {
  const last = events.findLast((event) => event.kind === "hangs" || event.kind === "goes-on");
  return job.state === "running" && last?.kind === "hangs" && last.attempt === job.attempt;
}
