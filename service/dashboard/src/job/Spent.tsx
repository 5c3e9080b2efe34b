import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { metricsOf, useMetrics } from "../api/metrics";
import type { Event, Job } from "../api/types";
import { hours, percent } from "../lib/format";
import { meanOf } from "../lib/series";
import { duration } from "../lib/time";
import { spans, spent } from "../lib/timeline";
import { Panel } from "../ui/Panel";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";

const SECONDS_PER_HOUR = 3600;

/** Where the job's time went, as one bar. */
export function Spent({ job, events }: { job: Job; events: readonly Event[] }) {
  const now = useNow(5_000);
  const { one } = useResource();
  const wait = meanOf(useMetrics(metricsOf(job), "step").data?.series ?? [], "data_wait");
  const parts = spent(spans(events, job, now), wait);
  const all = parts.reduce((sum, part) => sum + part.seconds, 0);
  if (all === 0) return null;
  const held = parts.filter(({ key }) => key !== "queue").reduce((sum, part) => sum + part.seconds, 0);
  const tools = job.gpus > 0 && (
    <span className="faint">
      <Trans>{{ hours: hours(held * job.gpus / SECONDS_PER_HOUR) }} {one}-hours held</Trans>
    </span>
  );
  return (
    <Panel title={t`Where the time went`} tools={tools}>
      <div className="spent-bar" aria-hidden="true">
        {parts.map(({ key, seconds }) => <div key={key} data-part={key} style={{ flexGrow: seconds / all }} />)}
      </div>
      <ul className="spent">
        {parts.map(({ key, label, seconds }) => (
          <li key={key} data-part={key}>
            <i aria-hidden="true" /> {label} <b>{duration(seconds)}</b> <span className="faint">{percent(seconds / all)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
