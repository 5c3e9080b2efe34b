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
        <p className="announcement">
          The queue is paused by {pause.user} since <Time at={pause.since} near={now} />
          {pause.message !== "" && `: ${pause.message}`}. Running jobs go on.
        </p>
      )}
      {announcement != null && (
        <p className="announcement">
          {announcement.message}
          {" "}<span className="by">{announcement.user}</span>
          {announcement.until !== null && <span className="by">, until <Time at={announcement.until} near={now} /></span>}
        </p>
      )}
    </div>
  );
}
