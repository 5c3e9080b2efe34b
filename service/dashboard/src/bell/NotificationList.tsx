import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";

import { type JobNotification, LAMPS, type NotificationKind } from "../lib/notifications";
import { Ago } from "../ui/Ago";
import { useNow } from "../ui/useNow";

const WORDS: Record<NotificationKind, string> = {
  started: t`Your turn`, hangs: t`Hangs`, failed: t`Failed`, done: t`Done`,
};

interface Props {
  items: readonly JobNotification[];
  unread: ReadonlySet<string>;
  onOpen: () => void;
}

/** The last notifications, each with a link to its job. */
export function NotificationList({ items, unread, onOpen }: Props) {
  const now = useNow(30_000);
  if (items.length === 0) {
    return <p className="soft bell-none"><Trans>Nothing yet. You hear here when a job of yours starts, hangs, fails or is done.</Trans></p>;
  }
  return (
    <ul className="bell-list">
      {items.map(({ id, kind, number, name, at, message }) => (
        <li key={id} data-unread={unread.has(id) || undefined}>
          <div className="bell-line">
            <span className="chip" data-state={LAMPS[kind]}><i aria-hidden="true" />{WORDS[kind]}</span>
            <span className="faint"><Ago at={at} now={now} /></span>
          </div>
          <Link to="/jobs/$jobId" params={{ jobId: String(number) }} onClick={onOpen}>{number} {name}</Link>
          {unread.has(id) && <span className="hidden-words"><Trans>unread</Trans></span>}
          {message !== null && <p className="soft">{message}</p>}
        </li>
      ))}
    </ul>
  );
}
