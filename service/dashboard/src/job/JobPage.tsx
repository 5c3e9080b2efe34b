import "../styles/stages.css";

import { Trans } from "@lingui/react/macro";
import { Link, useParams } from "@tanstack/react-router";

import { useJob } from "../api/jobs";
import type { Job } from "../api/types";
import { type JobTab, tabOf } from "../lib/jobTabs";
import { jobTitle } from "../lib/title";
import { Notice } from "../ui/Notice";
import { useTitle } from "../ui/useTitle";
import { ChartsTab } from "./ChartsTab";
import { Checkpoints } from "./Checkpoints";
import { Discarded } from "./Discard";
import { Header } from "./Header";
import { LogTab } from "./LogTab";
import { OverviewTab } from "./OverviewTab";
import { SpecTab } from "./SpecTab";
import { Tabs } from "./Tabs";
import { Telemetry } from "./Telemetry";

const CONTENTS: Record<JobTab, (props: { job: Job }) => React.ReactNode> = {
  overview: OverviewTab,
  charts: ChartsTab,
  log: LogTab,
  checkpoints: Checkpoints,
  machine: Telemetry,
  spec: SpecTab,
};

/** Tabs of what the job wrote, which may be gone. */
const WRITTEN: ReadonlySet<JobTab> = new Set<JobTab>(["charts", "log", "checkpoints"]);

export function JobPage() {
  const { jobId } = useParams({ from: "/jobs/$jobId" });
  const { tab: named } = useParams({ strict: false });
  const job = useJob(jobId);
  const tab = tabOf(named);
  useTitle(job.data && jobTitle(job.data));
  if (job.data === undefined) return <Notice error={job.error} />;
  return (
    <div className="job-page" key={job.data.id}>
      <Notice error={job.error} />
      <Header job={job.data} />
      {tab === null
        ? (
            <p>
              <Trans>
                There is no such part of a job. <Link to="/jobs/$jobId" params={{ jobId }}>To its overview</Link>
              </Trans>
            </p>
          )
        : <Tabs job={jobId} tab={tab}><Content job={job.data} tab={tab} /></Tabs>}
    </div>
  );
}

function Content({ job, tab }: { job: Job; tab: JobTab }) {
  const Shown = CONTENTS[tab];
  return job.discarded_at != null && WRITTEN.has(tab) ? <Discarded at={job.discarded_at} /> : <Shown job={job} />;
}
