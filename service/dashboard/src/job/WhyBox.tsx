import { Link } from "@tanstack/react-router";

import { useWhy } from "../api/jobs";
import type { Job } from "../api/types";
import { moment } from "../lib/format";

/** Why the job is where it is, in the service's own words. */
export function WhyBox({ job }: { job: Job }) {
  const why = useWhy(job, true).data;
  if (why === undefined) return null;
  return (
    <section className="why" aria-label="Why">
      <p className="why-summary">
        {why.position !== null && <span className="why-place">{why.position}</span>}
        <span>{why.summary}</span>
      </p>
      {why.expected_start_at !== null && <p className="soft">Expected to start by {moment(why.expected_start_at)}.</p>}
      <ul>
        {why.reasons.filter((reason) => reason.message !== why.summary).map((reason) => (
          <li key={reason.code + reason.message}>
            {reason.message}
            {reason.jobs.map((id) => (
              <Link key={id} to="/jobs/$jobId" params={{ jobId: id }} className="why-job">see its holder</Link>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}
