import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";

import { useDigest } from "../api/sharing";
import type { Digest, Waste } from "../api/types";
import { hours, percent } from "../lib/format";
import { day, duration } from "../lib/time";
import { wasteWords } from "../lib/wastes";
import { shifted, weekOf } from "../lib/weeks";
import { Coded } from "../ui/Coded";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";
import { hoursOf, UsageBars } from "./UsageBars";

const BY = [{ key: "user", label: t`Users` }, { key: "project", label: t`Projects` }] as const;

/** A week of the box: who had it, what came of it, and what was wasted. */
export function Usage() {
  const running = weekOf(useNow(60_000));
  const [chosen, setChosen] = useState<string | null>(null);
  const week = chosen ?? running;
  const [by, setBy] = useState<"user" | "project">("user");
  const found = useDigest(week);
  const digest = found.data;
  const tools = (
    <>
      <WeekChooser week={week} last={running} onChange={(next) => setChosen(next === running ? null : next)} />
      <Segments label={t`By`} options={BY} value={by} onChange={setBy} />
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
    <Panel title={t`Usage`} tools={tools}>
      <Notice error={found.error} />
      {digest !== undefined && (
        <div className="usage">
          <Sentences digest={digest} running={digest.week === running} />
          <UsageBars rows={by === "user" ? digest.users : digest.projects} />
          <Wastes wastes={digest.wastes} />
        </div>
      )}
    </Panel>
  );
}

function WeekChooser({ week, last, onChange }: { week: string; last: string; onChange: (week: string) => void }) {
  return (
    <div className="week" role="group" aria-label={t`Week`}>
      <button type="button" className="button small" aria-label={t`The week before`} onClick={() => onChange(shifted(week, -1))}>
        ‹
      </button>
      <span>{week === last ? t`this week` : week}</span>
      <button
        type="button"
        className="button small"
        aria-label={t`The week after`}
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
  const { capacity, held, useful, total, started, mean_wait_s: wait } = digest;
  const [since, until, amount] = [day(digest.since), day(digest.until), hours(capacity)];
  const all = running ? <Trans><b>{amount}</b> {one}-hours so far</Trans> : <Trans><b>{amount}</b> {one}-hours</Trans>;
  const part = total.total > 0 ? percent(total.useful / total.total) : null;
  const stoppable = percent(total.stoppable / total.total);
  return (
    <div className="sentences">
      <p className="faint" title={t`Days begin at midnight UTC`}><Trans>{since} to {until}</Trans></p>
      {held === null || useful === null
        ? <p><Trans>No node was there.</Trans></p>
        : <p><Held all={all} held={percent(held)} useful={percent(useful)} part={part} /></p>}
      {total.total > 0 && (
        <p>
          <Trans>
            <b>{stoppable}</b> of what was held could have been shared: its jobs can be stopped for others and go on
            later.
          </Trans>
        </p>
      )}
      <p><Started count={started} wait={wait} /></p>
    </div>
  );
}

function Held({ all, held, useful, part }: { all: ReactNode; held: string; useful: string; part: string | null }) {
  if (part === null) return <Trans>Of {all}, <b>{held}</b> were held and <b>{useful}</b> did work that counts.</Trans>;
  return (
    <Trans>
      Of {all}, <b>{held}</b> were held and <b>{useful}</b> did work that counts: {part} of what was held.
    </Trans>
  );
}

function Started({ count, wait }: { count: number; wait: number | null }) {
  if (count === 0) return <Trans>No job started.</Trans>;
  const jobs = plural(count, { one: "# job", other: "# jobs" });
  if (wait === null) return <Trans><b>{jobs}</b> started.</Trans>;
  const span = duration(wait);
  return <Trans><b>{jobs}</b> started, after waiting <b>{span}</b> on average.</Trans>;
}

function Wastes({ wastes }: { wastes: readonly Waste[] }) {
  if (wastes.length === 0) return null;
  return (
    <section className="wastes" aria-label={t`Biggest wastes`}>
      <h3><Trans>Biggest wastes</Trans></h3>
      <ol>
        {wastes.map((waste) => (
          <li key={waste.kind + waste.user}>
            <span className="waste-hours" data-part={waste.kind}>{hoursOf(waste.gpu_hours, waste.kind)}</span>
            <p><Coded text={wasteWords(waste)} /></p>
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
