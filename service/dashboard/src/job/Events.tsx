import type { Event } from "../api/types";
import { moment } from "../lib/format";
import { Panel } from "../ui/Panel";

export function Events({ events }: { events: readonly Event[] }) {
  return (
    <Panel title="Events">
      <ol className="events">
        {events.toReversed().map((event) => (
          <li key={event.seq} data-state={event.state}>
            <time dateTime={event.at}>{moment(event.at)}</time>
            <span className="event-kind">{event.kind}</span>
            <span>{event.message}</span>
            {event.actor !== null && <span className="faint">{event.actor}</span>}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
