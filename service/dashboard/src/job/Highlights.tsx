import { Link } from "@tanstack/react-router";

import { useMetrics } from "../api/jobs";
import type { Job } from "../api/types";
import { metric } from "../lib/format";
import { type Highlight, highlights } from "../lib/highlights";
import { Sparkline } from "../ui/Sparkline";

/** Losses and accuracies, large, each with its curve and its best value; nothing while there are none. */
export function Highlights({ job }: { job: Job }) {
  const shown = highlights(useMetrics(job, "step").data?.series ?? []);
  if (shown.length === 0) return null;
  return (
    <section className="highlights" aria-label="Metrics">
      {shown.map((one) => <Card key={one.name} job={job} one={one} />)}
    </section>
  );
}

function Card({ job, one }: { job: Job; one: Highlight }) {
  const least = one.values.reduce((a, b) => Math.min(a, b), Infinity);
  const most = one.values.reduce((a, b) => Math.max(a, b), -Infinity);
  return (
    <Link to="/jobs/$jobId/$tab" params={{ jobId: String(job.number), tab: "charts" }} className="highlight">
      <span className="highlight-name">{one.name}</span>
      <span className="highlight-value">{metric(one.latest)}</span>
      <span className="faint">{one.best !== null && `${one.best.word} ${metric(one.best.value)}`}</span>
      <Sparkline values={one.values.map((value) => value - least)} top={most - least} />
    </Link>
  );
}
