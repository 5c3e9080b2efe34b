import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { useMayChange } from "../api/session";
import { useSweepChange } from "../api/sweeps";
import type { Group } from "../api/types";
import { metric } from "../lib/format";
import { duration, secondsBetween } from "../lib/time";
import { parameter, search, valueOf } from "../lib/trials";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { StateBar } from "../ui/StateBar";
import { Time } from "../ui/Time";
import { useNow } from "../ui/useNow";

export function SweepHeader({ sweep }: { sweep: Group }) {
  const mine = useMayChange(sweep);
  return (
    <header className="job-head">
      <div className="job-title">
        <span className="job-number">{sweep.number}</span>
        <h1>{sweep.name}</h1>
        <span className="badge">
          <Plural value={{ count: sweep.size }} one="sweep of # job" other="sweep of # jobs" />
        </span>
        {mine && <SweepActions sweep={sweep} />}
      </div>
      {sweep.paused !== null && <Paused sweep={sweep} reason={sweep.paused} />}
      <StateBar states={sweep.states} />
      <Facts sweep={sweep} />
      <Best sweep={sweep} />
    </header>
  );
}

/** Why no trial starts, which names the mend. */
function Paused({ sweep, reason }: { sweep: Group; reason: string }) {
  const change = useSweepChange();
  const mine = useMayChange(sweep);
  return (
    <section className="paused" aria-label={t`Paused`}>
      <p><Trans><strong>Paused:</strong> {reason}.</Trans></p>
      {mine && (
        <button
          type="button"
          className="button"
          disabled={change.isPending}
          onClick={() => change.mutate({ id: sweep.id, change: "resume" })}
        >
          <Trans>Resume the sweep</Trans>
        </button>
      )}
      <Notice error={change.error} />
    </section>
  );
}

function SweepActions({ sweep }: { sweep: Group }) {
  const change = useSweepChange();
  const [asking, setAsking] = useState(false);
  const waiting = sweep.states.queued ?? 0;
  const button = (label: string, what: "hold" | "release") => (
    <button
      type="button"
      className="button"
      disabled={change.isPending}
      onClick={() => change.mutate({ id: sweep.id, change: what })}
    >
      {label}
    </button>
  );
  return (
    <div className="actions">
      {waiting > sweep.held && button(t`Hold`, "hold")}
      {sweep.held > 0 && button(t`Release`, "release")}
      {sweep.ended_at === null && (
        <button type="button" className="button danger" onClick={() => setAsking(true)}><Trans>Cancel</Trans></button>
      )}
      <Notice error={change.error} />
      {asking && (
        <Dialog
          title={t`Cancel sweep ${{ number: sweep.number }}?`}
          confirm={t`Cancel all its jobs`}
          danger
          busy={change.isPending}
          onConfirm={() => change.mutate({ id: sweep.id, change: "cancel" }, { onSuccess: () => setAsking(false) })}
          onClose={() => setAsking(false)}
        >
          <p><Trans>Jobs that wait leave the queue at once; those that run save a checkpoint first.</Trans></p>
        </Dialog>
      )}
    </div>
  );
}

function Facts({ sweep }: { sweep: Group }) {
  const now = useNow();
  return (
    <dl className="facts">
      <div><dt><Trans>User</Trans></dt><dd>{sweep.user}</dd></div>
      <div>
        <dt><Trans>Project</Trans></dt>
        <dd><Link to="/" search={{ project: sweep.project }}>{sweep.project}</Link></dd>
      </div>
      <div><dt><Trans>Submitted</Trans></dt><dd><Time at={sweep.created_at} /></dd></div>
      <div>
        <dt>{sweep.ended_at === null ? t`Since then` : t`Took`}</dt>
        <dd>{duration(secondsBetween(sweep.created_at, sweep.ended_at, now))}</dd>
      </div>
      <div><dt><Trans>Search</Trans></dt><dd>{search(sweep)}</dd></div>
      {sweep.held > 0 && <div><dt><Trans>Held</Trans></dt><dd>{sweep.held}</dd></div>}
      {sweep.stopped_early > 0 && <div><dt><Trans>Stopped early</Trans></dt><dd>{sweep.stopped_early}</dd></div>}
    </dl>
  );
}

/** The trial that does best, and with which values. */
function Best({ sweep }: { sweep: Group }) {
  const { best } = sweep;
  const value = best && valueOf(best, sweep.metric);
  if (!best || typeof value !== "number") return null;
  return (
    <p className="best-trial">
      <span className="badge best"><Trans>best</Trans></span>
      <span><span className="faint">{sweep.metric}</span> <b>{metric(value)}</b></span>
      <Link to="/jobs/$jobId" params={{ jobId: String(best.number) }}>{best.number} {best.name}</Link>
      {Object.entries(best.parameters ?? {}).map(([name, given]) => (
        <span key={name}><span className="faint">{name}</span> {parameter(given)}</span>
      ))}
    </p>
  );
}
