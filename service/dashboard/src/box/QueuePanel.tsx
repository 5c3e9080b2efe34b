import { Link } from "@tanstack/react-router";

import { useQueue } from "../api/box";
import { plural } from "../lib/format";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";

/** Who waits, in order, and for what. */
export function QueuePanel() {
  const queue = useQueue();
  const entries = queue.data?.items ?? [];
  return (
    <Panel title="Queue" className="queue" tools={<span className="faint">{plural(entries.length, "job")}</span>}>
      <Notice error={queue.error} />
      {queue.data !== undefined && entries.length === 0 && <p className="soft pad">Nobody waits.</p>}
      <ol>
        {entries.map((entry) => (
          <li key={entry.job} data-held={entry.held || undefined}>
            <span className="queue-place">{entry.held ? "–" : entry.position}</span>
            <div>
              <Link to="/jobs/$jobId" params={{ jobId: String(entry.number) }}>{entry.number} {entry.name}</Link>
              <span className="faint"> {entry.user} · {plural(entry.gpus, "GPU")}
                {entry.priority !== "normal" && ` · ${entry.priority}`}
              </span>
              <p className="soft">{entry.reason}</p>
            </div>
          </li>
        ))}
      </ol>
    </Panel>
  );
}
