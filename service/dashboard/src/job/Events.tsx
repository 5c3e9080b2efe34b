import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import type { Event } from "../api/types";
import { eventLabel, eventWords } from "../lib/events";
import { Message } from "../ui/Message";
import { Panel } from "../ui/Panel";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";

interface Props {
  events: readonly Event[];
  /** Whether newer ones are not read yet. */
  more: boolean;
  onMore: () => void;
}

/** What happened, the newest on top; of a long history the later part is read when asked for. */
export function Events({ events, more, onMore }: Props) {
  const now = useNow(30_000);
  const tools = more && (
    <>
      <span className="faint"><Trans>the first {{ count: events.length }}</Trans></span>
      <button type="button" className="button small" onClick={onMore}><Trans>Load more</Trans></button>
    </>
  );
  return (
    <Panel title={t`Events`} tools={tools}>
      <ol className="events">
        {events.toReversed().map((event) => (
          <li key={event.seq} data-state={event.state}>
            <Time at={event.at} />
            <span className="event-kind">{eventLabel(event.kind)}</span>
            <span><Message text={eventWords(event)} now={now} /></span>
            {event.actor !== null && <span className="faint">{event.actor}</span>}
          </li>
        ))}
      </ol>
    </Panel>
  );
}
