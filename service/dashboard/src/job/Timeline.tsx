import { t } from "@lingui/core/macro";

import type { Event, Job } from "../api/types";
import { isFinal, STATE_LABELS } from "../lib/states";
import { duration, exactly } from "../lib/time";
import { type Span, spans } from "../lib/timeline";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";

/** The job's way through its states. */
export function Timeline({ events, job }: { events: readonly Event[]; job: Job }) {
  const now = useNow();
  const line = spans(events, job, now);
  const final = isFinal(job.state);
  if (line.length === 0) return null;
  const last = events.find((event) => isFinal(event.state)) ?? events.at(-1);
  return (
    <ol className="timeline" aria-label={t`States`}>
      {line.map((span) => (
        <li
          key={`${span.state} ${span.from}`}
          data-state={span.state}
          data-open={(span.open && !final) || undefined}
          style={{ flexGrow: span.share }}
          title={titleOf(span)}
        >
          <span className="timeline-state">{STATE_LABELS[span.state]}</span>
          <span className="timeline-time">{duration((span.to - span.from) / 1000)}</span>
        </li>
      ))}
      {final && last !== undefined && (
        <li className="timeline-end" data-state={last.state}>
          <span className="timeline-state">{STATE_LABELS[last.state]}</span>
          <span className="timeline-time"><Time at={job.ended_at ?? last.at} /></span>
        </li>
      )}
    </ol>
  );
}

function titleOf({ state: key, from }: Span): string {
  const [state, since] = [STATE_LABELS[key], exactly(new Date(from).toISOString())];
  return t`${state} from ${since}`;
}
