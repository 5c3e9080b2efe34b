import { t } from "@lingui/core/macro";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";

import { metricsOf, type MetricsSource, useMetrics } from "../api/metrics";
import type { Job } from "../api/types";
import { metric } from "../lib/format";
import { type Highlight, highlights } from "../lib/highlights";
import { Sparkline } from "../ui/Sparkline";

/** Losses and accuracies of a job, each of which leads to its charts. */
export function Highlights({ job }: { job: Job }) {
  return (
    <HighlightCards source={metricsOf(job)}>
      {(content, name) => (
        <Link key={name} to="/jobs/$jobId/$tab" params={{ jobId: String(job.number), tab: "charts" }} className="highlight">
          {content}
        </Link>
      )}
    </HighlightCards>
  );
}

interface Props {
  source: MetricsSource;
  /** Puts the content of a card into its frame. */
  children: (content: ReactNode, name: string) => ReactNode;
}

/** Losses and accuracies, large, each with its curve and its best value; nothing while there are none. */
export function HighlightCards({ source, children }: Props) {
  const shown = highlights(useMetrics(source, "step").data?.series ?? []);
  if (shown.length === 0) return null;
  return (
    <section className="highlights" aria-label={t`Metrics`}>
      {shown.map((one) => children(<Content one={one} />, one.name))}
    </section>
  );
}

function bestOf({ word, value }: NonNullable<Highlight["best"]>): string {
  const shown = metric(value);
  return word === "lowest" ? t`lowest ${shown}` : t`highest ${shown}`;
}

function Content({ one }: { one: Highlight }) {
  const least = one.values.reduce((a, b) => Math.min(a, b), Infinity);
  const most = one.values.reduce((a, b) => Math.max(a, b), -Infinity);
  return (
    <>
      <span className="highlight-name">{one.name}</span>
      <span className="highlight-value">{metric(one.latest)}</span>
      <span className="faint">{one.best !== null && bestOf(one.best)}</span>
      <Sparkline values={one.values.map((value) => value - least)} top={most - least} />
    </>
  );
}
