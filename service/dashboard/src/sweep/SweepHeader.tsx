import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { useMayChange } from "../api/session";
import { useSweepChange } from "../api/sweeps";
import type { Group } from "../api/types";
import { metric, plural } from "../lib/format";
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
        <span className="badge">sweep of {plural(sweep.size, "job")}</span>
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
    <section className="paused" aria-label="Paused">
      <p><strong>Paused:</strong> {reason}.</p>
      {mine && (
        <button
          type="button"
          className="button"
          disabled={change.isPending}
          onClick={() => change.mutate({ id: sweep.id, change: "resume" })}
        >
          Resume the sweep
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
      {waiting > sweep.held && button("Hold", "hold")}
      {sweep.held > 0 && button("Release", "release")}
      {sweep.ended_at === null && (
        <button type="button" className="button danger" onClick={() => setAsking(true)}>Cancel</button>
      )}
      <Notice error={change.error} />
      {asking && (
        <Dialog
          title={`Cancel sweep ${sweep.number}?`}
          confirm="Cancel all its jobs"
          danger
          busy={change.isPending}
          onConfirm={() => change.mutate({ id: sweep.id, change: "cancel" }, { onSuccess: () => setAsking(false) })}
          onClose={() => setAsking(false)}
        >
          <p>Jobs that wait leave the queue at once; those that run save a checkpoint first.</p>
        </Dialog>
      )}
    </div>
  );
}

function Facts({ sweep }: { sweep: Group }) {
  const now = useNow();
  return (
    <dl className="facts">
      <div><dt>User</dt><dd>{sweep.user}</dd></div>
      <div><dt>Project</dt><dd><Link to="/" search={{ project: sweep.project }}>{sweep.project}</Link></dd></div>
      <div><dt>Submitted</dt><dd><Time at={sweep.created_at} /></dd></div>
      <div>
        <dt>{sweep.ended_at === null ? "Since then" : "Took"}</dt>
        <dd>{duration(secondsBetween(sweep.created_at, sweep.ended_at, now))}</dd>
      </div>
      <div><dt>Search</dt><dd>{search(sweep)}</dd></div>
      {sweep.held > 0 && <div><dt>Held</dt><dd>{sweep.held}</dd></div>}
      {sweep.stopped_early > 0 && <div><dt>Stopped early</dt><dd>{sweep.stopped_early}</dd></div>}
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
      <span className="badge best">best</span>
      <span><span className="faint">{sweep.metric}</span> <b>{metric(value)}</b></span>
      <Link to="/jobs/$jobId" params={{ jobId: String(best.number) }}>{best.number} {best.name}</Link>
      {Object.entries(best.parameters ?? {}).map(([name, given]) => (
        <span key={name}><span className="faint">{name}</span> {parameter(given)}</span>
      ))}
    </p>
  );
}
