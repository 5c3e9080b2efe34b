import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { useQueue } from "../api/box";
import type { QueueEntry } from "../api/types";
import { sentence, UNKNOWN } from "../lib/format";
import { shownName } from "../lib/jobWords";
import { priorityLabel } from "../lib/priorities";
import { reasonWords } from "../lib/reasons";
import { counted } from "../lib/resources";
import { withoutTime } from "../lib/waiting";
import { Forecast } from "../ui/Forecast";
import { Message } from "../ui/Message";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";

/** Places that are shown at first. */
const SHOWN = 12;

/** Who waits, in order, and for what. */
export function QueuePanel() {
  const now = useNow(30_000);
  const resource = useResource();
  const queue = useQueue();
  const [whole, setWhole] = useState(false);
  const entries = queue.data?.items ?? [];
  const count = entries.length;
  return (
    <Panel title={t`Queue`} className="queue" tools={<span className="faint">{queue.data === undefined ? UNKNOWN : plural(count, { one: "# job", other: "# jobs" })}</span>}>
      <Notice error={queue.error} />
      {queue.data !== undefined && count === 0 && <p className="soft pad"><Trans>Nobody waits.</Trans></p>}
      <ol>
        {entries.slice(0, whole ? undefined : SHOWN).map((entry) => (
          <li key={entry.job} data-held={entry.held || undefined}>
            <span className="queue-place">{entry.held ? "–" : entry.position}</span>
            <div>
              {entry.readable
                ? <Link to="/jobs/$jobId" params={{ jobId: String(entry.number) }}>{entry.number} {entry.name}</Link>
                : `${entry.number} ${shownName(entry.name, false)}`}
              <span className="faint"> {entry.user} · {counted(entry.gpus, resource)}
                {entry.priority !== "normal" && ` · ${priorityLabel(entry.priority)}`}
              </span>
              <p className="soft"><Message text={t`${{ reason: sentence(reasonOf(entry)) }}.`} now={now} /></p>
              {entry.expected_start_at != null && (
                <p className="queue-when">
                  <Trans>
                    starts <Forecast p50={entry.expected_start_at} p90={entry.expected_start_p90_at} now={now} />
                  </Trans>
                </p>
              )}
            </div>
          </li>
        ))}
      </ol>
      {!whole && count > SHOWN && (
        <button type="button" className="button small queue-more" onClick={() => setWhole(true)}>
          <Trans>Show all {count}</Trans>
        </button>
      )}
    </Panel>
  );
}

/** Its reason, in which no time stands that is told as its expected start. */
function reasonOf({ reason: message, reason_code: code, reason_params: params, ...entry }: QueueEntry): string {
  const reason = reasonWords({ code, message, params });
  return entry.expected_start_at == null ? reason : withoutTime(reason);
}
