import { Trans } from "@lingui/react/macro";

import { useNotices } from "../api/notices";
import { Time } from "./Time";
import { useNow } from "./useNow";

/** What administrators tell everybody: that the queue is paused, and their announcement. */
export function NoticeBanner() {
  const { pause, announcement } = useNotices().data ?? {};
  const now = useNow(60_000);
  return (
    <div role="status">
      {pause != null && (
        <p className="announcement"><Paused {...pause} now={now} /></p>
      )}
      {announcement != null && (
        <p className="announcement">
          {announcement.message}
          {" "}<span className="by">{announcement.user}</span>
          {announcement.until !== null && <span className="by"><Trans>, until <Time at={announcement.until} near={now} /></Trans></span>}
        </p>
      )}
    </div>
  );
}

function Paused({ user, since, message, now }: { user: string; since: string; message: string; now: number }) {
  const time = <Time at={since} near={now} />;
  return message === ""
    ? <Trans>The queue is paused by {user} since {time}. Running jobs go on.</Trans>
    : <Trans>The queue is paused by {user} since {time}: {message}. Running jobs go on.</Trans>;
}
