import "../styles/bell.css";

import { t } from "@lingui/core/macro";
import * as Popover from "@radix-ui/react-popover";
import { useState } from "react";

import { useNotifications } from "../api/notifications";
import { badge, type JobNotification } from "../lib/notifications";
import { NotificationList } from "./NotificationList";
import { useRead } from "./readNotifications";
import { SystemChoice } from "./SystemChoice";
import { useSystemNotifications } from "./useSystemNotifications";

/** So many of the last notifications are listed. */
const SHOWN = 20;
/** So many are remembered as read. */
const REMEMBERED = 200;
const NONE: readonly JobNotification[] = [];

/** What has become of the viewer's jobs since they last looked. */
export default function Bell({ user }: { user: string }) {
  const all = useNotifications(user);
  useSystemNotifications(all);
  const shown = (all ?? NONE).slice(0, SHOWN);
  const [read, setRead] = useRead(user);
  /** Those that were unread when the list was opened; null while it is closed. */
  const [opened, setOpened] = useState<readonly string[] | null>(null);
  const unread = shown.map(({ id }) => id).filter((id) => !read.has(id));
  // What comes while the list is open is seen there, and read with it.
  const count = opened === null ? unread.length : 0;
  const open = (wanted: boolean) => {
    setOpened(wanted ? unread : null);
    if (unread.length > 0) setRead([...unread, ...read].slice(0, REMEMBERED));
  };
  return (
    <Popover.Root open={opened !== null} onOpenChange={open}>
      <Popover.Trigger
        className="button small ghost bell"
        aria-label={count === 0 ? t`Notifications` : t`Notifications, ${count} unread`}
        title={t`Notifications`}
      >
        <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" fill="none" stroke="currentColor" strokeWidth="1.6">
          <path d="M10 3a5 5 0 0 0-5 5v3l-1.5 3h13L15 11V8a5 5 0 0 0-5-5ZM8 16.5a2 2 0 0 0 4 0" strokeLinejoin="round" />
        </svg>
        {count > 0 && <span className="bell-count" aria-hidden="true">{badge(count)}</span>}
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content className="popover bell-panel" align="end" sideOffset={6} collisionPadding={8} aria-label={t`Notifications`}>
          <NotificationList items={shown} unread={new Set([...opened ?? [], ...unread])} onOpen={() => open(false)} />
          <SystemChoice />
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
