import { useMemo } from "react";

import { useEvents } from "../api/jobs";
import type { Event, Job } from "../api/types";
import { Discarded } from "./Discard";
import { Events } from "./Events";
import { Failure } from "./Failure";
import { Highlights } from "./Highlights";
import { Outputs } from "./Outputs";
import { Spent } from "./Spent";
import { Stacks } from "./Stacks";
import { StartTiming } from "./StartTiming";
import { Timeline } from "./Timeline";
import { Warnings } from "./Warnings";
import { WhyBox } from "./WhyBox";

/** What a job is about, what became of it, and what it has left. */
export function OverviewTab({ job }: { job: Job }) {
  const { pages, more, readMore } = useEvents(job);
  const events = useMemo(() => pages?.flatMap((page) => page.items) ?? [], [pages]);
  return (
    <>
      <Warnings job={job} />
      {job.state === "failed" && <Failure job={job} />}
      {job.state !== "succeeded" && !(job.state === "failed" && job.error) && <WhyBox job={job} />}
      <Stacks job={job} hangs={hangs(job, events)} />
      {job.discarded_at == null && <Highlights job={job} />}
      <Timeline events={events} job={job} />
      <Spent job={job} events={events} />
      {job.discarded_at == null ? <Outputs job={job} /> : <Discarded at={job.discarded_at} />}
      <StartTiming job={job} />
      <Events events={events} more={more} onMore={readMore} />
    </>
  );
}

/** Whether the job is taken for hanging, as its events tell. */
function hangs(job: Job, events: readonly Event[]): boolean {
  const last = events.findLast((event) => event.kind === "hangs" || event.kind === "goes-on");
  return job.state === "running" && last?.kind === "hangs" && last.attempt === job.attempt;
}
