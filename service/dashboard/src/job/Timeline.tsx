import type { Event } from "../api/types";
import { clock, duration } from "../lib/format";
import { isFinal } from "../lib/states";
import { spans } from "../lib/timeline";
import { useNow } from "../ui/useNow";

/** The job's way through its states as a line of track. */
export function Timeline({ events, final }: { events: readonly Event[]; final: boolean }) {
  const now = useNow();
  const line = spans(events, now);
  if (line.length === 0) return null;
  const last = events.find((event) => isFinal(event.state)) ?? events.at(-1);
  return (
    <ol className="timeline" aria-label="States">
      {line.map((span) => (
        <li
          key={`${span.state} ${span.from}`}
          data-state={span.state}
          data-open={(span.open && !final) || undefined}
          style={{ flexGrow: span.share }}
          title={`${span.state} from ${clock(new Date(span.from).toISOString())}`}
        >
          <span className="timeline-state">{span.state}</span>
          <span className="timeline-time">{duration((span.to - span.from) / 1000)}</span>
        </li>
      ))}
      {final && last !== undefined && (
        <li className="timeline-end" data-state={last.state}>
          <span className="timeline-state">{last.state}</span>
          <span className="timeline-time">{clock(last.at)}</span>
        </li>
      )}
    </ol>
  );
}
