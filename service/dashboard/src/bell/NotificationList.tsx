import { Link } from "@tanstack/react-router";

import { type JobNotification, LAMPS, type NotificationKind } from "../lib/notifications";
import { age, secondsBetween } from "../lib/time";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";

const WORDS: Record<NotificationKind, string> = { started: "Your turn", hangs: "Hangs", failed: "Failed", done: "Done" };

interface Props {
  items: readonly JobNotification[];
  unread: ReadonlySet<string>;
  onOpen: () => void;
}

/** The last notifications, each with a link to its job. */
export function NotificationList({ items, unread, onOpen }: Props) {
  const now = useNow(30_000);
  if (items.length === 0) {
    return <p className="soft bell-none">Nothing yet. You hear here when a job of yours starts, hangs, fails or is done.</p>;
  }
  return (
    <ul className="bell-list">
      {items.map(({ id, kind, number, name, at, message }) => (
        <li key={id} data-unread={unread.has(id) || undefined}>
          <div className="bell-line">
            <span className="chip" data-state={LAMPS[kind]}><i aria-hidden="true" />{WORDS[kind]}</span>
            <span className="faint"><Time at={at}>{age(secondsBetween(at, null, now))}</Time> ago</span>
          </div>
          <Link to="/jobs/$jobId" params={{ jobId: String(number) }} onClick={onOpen}>{number} {name}</Link>
          {unread.has(id) && <span className="hidden-words">unread</span>}
          {message !== null && <p className="soft">{message}</p>}
        </li>
      ))}
    </ul>
  );
}
