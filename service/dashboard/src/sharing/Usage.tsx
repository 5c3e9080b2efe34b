import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { useDigest } from "../api/sharing";
import type { Digest, Waste } from "../api/types";
import { hours, percent, plural } from "../lib/format";
import { day, duration } from "../lib/time";
import { shifted, weekOf } from "../lib/weeks";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { useResource } from "../ui/useResource";
import { UsageBars } from "./UsageBars";

const BY = [{ key: "user", label: "Users" }, { key: "project", label: "Projects" }] as const;

/** A week of the box: who had it, what came of it, and what was wasted. */
export function Usage() {
  const [now] = useState(() => Date.now());
  const [week, setWeek] = useState(() => weekOf(now));
  const [by, setBy] = useState<"user" | "project">("user");
  const found = useDigest(week);
  const digest = found.data;
  const tools = (
    <>
      <WeekChooser week={week} last={weekOf(now)} onChange={setWeek} />
      <Segments label="By" options={BY} value={by} onChange={setBy} />
      {digest !== undefined && (
        <a
          className="button small"
          href={`/api/v1/usage?from=${digest.since}&to=${digest.until}&by=${by}&format=csv`}
          download={`usage-${digest.week}-${by}.csv`}
        >
          CSV
        </a>
      )}
    </>
  );
  return (
    <Panel title="Usage" tools={tools}>
      <Notice error={found.error} />
      {digest !== undefined && (
        <div className="usage">
          <Sentences digest={digest} running={week === weekOf(now)} />
          <UsageBars rows={by === "user" ? digest.users : digest.projects} />
          <Wastes wastes={digest.wastes} />
        </div>
      )}
    </Panel>
  );
}

function WeekChooser({ week, last, onChange }: { week: string; last: string; onChange: (week: string) => void }) {
  return (
    <div className="week" role="group" aria-label="Week">
      <button type="button" className="button small" aria-label="The week before" onClick={() => onChange(shifted(week, -1))}>
        ‹
      </button>
      <span>{week === last ? "this week" : week}</span>
      <button
        type="button"
        className="button small"
        aria-label="The week after"
        disabled={week >= last}
        onClick={() => onChange(shifted(week, 1))}
      >
        ›
      </button>
    </div>
  );
}

function Sentences({ digest, running }: { digest: Digest; running: boolean }) {
  const { one } = useResource();
  const { capacity, held, useful, total, started, mean_wait_s: wait, since, until } = digest;
  return (
    <div className="sentences">
      <p className="faint" title="Days begin at midnight UTC">{day(since)} to {day(until)}</p>
      {held === null || useful === null
        ? <p>No node was there.</p>
        : (
            <p>
              Of <b>{hours(capacity)}</b> {one}-hours{running && " so far"}, <b>{percent(held)}</b> were held
              and <b>{percent(useful)}</b> did work that counts
              {total.total > 0 && <>: {percent(total.useful / total.total)} of what was held</>}.
            </p>
          )}
      {total.total > 0 && (
        <p>
          <b>{percent(total.stoppable / total.total)}</b> of what was held could have been shared: its jobs can be
          stopped for others and go on later.
        </p>
      )}
      <p>
        {started === 0 ? "No job started." : <><b>{plural(started, "job")}</b> started</>}
        {started > 0 && wait !== null && <>, after waiting <b>{duration(wait)}</b> on average</>}
        {started > 0 && "."}
      </p>
    </div>
  );
}

function Wastes({ wastes }: { wastes: readonly Waste[] }) {
  if (wastes.length === 0) return null;
  return (
    <section className="wastes" aria-label="Biggest wastes">
      <h3>Biggest wastes</h3>
      <ol>
        {wastes.map((waste) => (
          <li key={waste.kind + waste.user}>
            <span className="waste-hours" data-part={waste.kind}>{hours(waste.gpu_hours)} h {waste.kind}</span>
            <p>{waste.message}</p>
            <p className="waste-jobs">
              {waste.jobs.map((number) => (
                <Link key={number} to="/jobs/$jobId" params={{ jobId: String(number) }}>{number}</Link>
              ))}
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}
