import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useWhy } from "../api/jobs";
import type { Alternative, Job, Reason, Why } from "../api/types";
import { changeWords } from "../lib/advice";
import { sentence } from "../lib/format";
import { reasonWords, summaryWords } from "../lib/reasons";
import { counted } from "../lib/resources";
import { pieces } from "../lib/time";
import { withoutTime } from "../lib/waiting";
import { Command } from "../ui/Command";
import { Forecast } from "../ui/Forecast";
import { Message } from "../ui/Message";
import { Notice } from "../ui/Notice";
import { Stale } from "../ui/Stale";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";
import { JobRef } from "./JobRef";

/** Jobs of one reason that are shown. */
const SHOWN = 6;
/** Reasons that the box tells by itself. */
const TOLD = new Set(["end"]);

/** What an alternative says of its time, which stands beside it. */
const WHEN = /^it (?:would start now|is expected to start at about [-\d]+ [:\d]+ UTC) /;

/** Forecasts that are no further apart are one. */
const ABOUT_MS = 120_000;

/** Why the job is where it is, when it goes on from there, and what would start it now. */
export function WhyBox({ job }: { job: Job }) {
  const now = useNow(30_000);
  const found = useWhy(job, true);
  const why = found.data;
  if (why === undefined) return <Notice error={found.error} />;
  const reasons = named(why.reasons.filter((one) => !TOLD.has(one.code)));
  return (
    <section className="why" aria-label={t`Why`} data-state={job.state}>
      <Stale found={found} now={now} />
      <p className="why-summary">
        {why.position !== null && <span className="why-place" title={t`Place in the queue`}>{why.position}</span>}
        <span><Message text={withoutTime(summaryWords(why, job.number))} now={now} /></span>
      </p>
      <Expected why={why} now={now} />
      <ul className="why-reasons">
        {reasons.map((one) => <Cause key={one.code + one.message} reason={one} why={why} now={now} />)}
      </ul>
      {why.alternatives.length > 0 && <Alternatives alternatives={why.alternatives} now={now} />}
    </section>
  );
}

/** The reasons, each job beside the first of them that names it. */
function named(reasons: readonly Reason[]): Reason[] {
  const shown = new Set<string>();
  return reasons.map((reason) => {
    const jobs = reason.jobs.filter((job) => !shown.has(job));
    jobs.forEach((job) => shown.add(job));
    return { ...reason, jobs };
  });
}

function Expected({ why, now }: { why: Why; now: number }) {
  const { expected_start_at: start, expected_end_at: end, position } = why;
  if (start !== null) {
    return <p><Trans>Starts <b><Forecast p50={start} p90={why.expected_start_p90_at} now={now} /></b>.</Trans></p>;
  }
  if (end != null) {
    return <p><Trans>Ends <b><Forecast p50={end} p90={why.expected_end_p90_at} now={now} /></b>.</Trans></p>;
  }
  return position === null ? null : <p className="soft"><Trans>Nobody can tell yet when it starts.</Trans></p>;
}

function Cause({ reason, why, now }: { reason: Reason; why: Why; now: number }) {
  const { jobs } = reason;
  const told = why.summary.includes(reason.message);
  const until = untold(reason, why);
  if (told && jobs.length === 0 && until === null) return null;
  const cause = told
    ? (reason.code === "dependency" ? t`Waits for` : t`In the way`)
    : <Message text={sentence(withoutTime(reasonWords(reason)))} now={now} />;
  return (
    <li>
      <p>
        {until === null
          ? cause
          : <Trans>{cause} <span className="why-until">until about <Time at={until} near={now} /></span></Trans>}
      </p>
      {jobs.length > 0 && (
        <ul className="job-refs">
          {jobs.slice(0, SHOWN).map((id) => <li key={id}><JobRef id={id} /></li>)}
          {jobs.length > SHOWN && (
            <li className="faint"><Trans>and {{ count: jobs.length - SHOWN }} more</Trans></li>
          )}
        </ul>
      )}
    </li>
  );
}

/** Until when, unless the sentence says so, or that is about when the job is expected to start. */
function untold({ message, until }: Reason, { expected_start_at: start }: Why): string | null {
  if (until == null || pieces(withoutTime(message)).some(({ at }) => at !== null)) return null;
  const same = start !== null && Math.abs(Date.parse(until) - Date.parse(start)) <= ABOUT_MS;
  return same ? null : until;
}

function Alternatives({ alternatives, now }: { alternatives: readonly Alternative[]; now: number }) {
  const resource = useResource();
  const wordsOf = (one: Alternative) => (
    changeWords(one, (count) => counted(count, resource)) ?? one.message.replace(WHEN, "")
  );
  const soon = alternatives.some((one) => one.starts === "now");
  return (
    <div className="alternatives">
      <h2>{soon ? t`What would start it now` : t`What would start it sooner`}</h2>
      <ol>
        {alternatives.map((one) => (
          <li key={one.command}>
            <span className="alternative-when" data-now={one.starts === "now" || undefined}>
              {one.starts === "now" ? t`now` : <Trans>about <Time at={one.starts} near={now} /></Trans>}
            </span>
            <p><Message text={t`${{ change: sentence(wordsOf(one)) }}.`} now={now} /></p>
            <Command text={one.command} />
          </li>
        ))}
      </ol>
    </div>
  );
}
