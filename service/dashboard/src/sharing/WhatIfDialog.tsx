import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useEffect, useRef, useState } from "react";

import { useWhatIf } from "../api/sharing";
import type { Policy, PolicyOutcome, WhatIfAnswer } from "../api/types";
import { fixed, percent } from "../lib/format";
import { draftOf, policyOf } from "../lib/policy";
import { duration } from "../lib/time";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Select } from "../ui/Select";
import { PolicyFields } from "./PolicyFields";

const WEEKS = [
  { key: "1", label: t`the last week` },
  { key: "4", label: t`the last four weeks` },
  { key: "12", label: t`the last twelve weeks` },
] as const;
const FIGURES: readonly { label: string; of: (found: PolicyOutcome) => string }[] = [
  { label: t`Mean wait`, of: (found) => duration(found.mean_wait_s) },
  { label: t`Mean time to the end`, of: (found) => duration(found.mean_jct_s) },
  { label: t`Of the slowest in a hundred`, of: (found) => duration(found.p99_jct_s) },
  { label: t`Held by jobs`, of: (found) => percent(found.utilization) },
  { label: t`Idle, though wanted`, of: (found) => percent(found.avoidable_idle) },
  { label: t`Idle, kept for a job`, of: (found) => percent(found.kept_idle) },
  { label: t`Idle, reserved for others`, of: (found) => percent(found.reserved_idle) },
  { label: t`Fairness over users (1: even)`, of: (found) => fixed(found.jain, 2) },
  { label: t`Jobs stopped for others`, of: (found) => String(found.preemptions) },
  { label: t`Jobs put back to start over`, of: (found) => String(found.restarts) },
];

/** A policy tried on what has run here: the scheduler's own code, played over the box's last weeks. */
export function WhatIfDialog({ policy, onClose }: { policy: Policy; onClose: () => void }) {
  const [draft, setDraft] = useState(() => draftOf(policy));
  const [weeks, setWeeks] = useState<(typeof WEEKS)[number]["key"]>("4");
  const play = useWhatIf();
  // What came of one policy is not shown below another.
  function anew<Value>(set: (value: Value) => void) {
    return (value: Value) => {
      set(value);
      play.reset();
    };
  }
  const confirm = () => play.mutate({ policy: policyOf(draft), weeks: Number(weeks) });
  return (
    <Dialog title={t`What if`} confirm={t`Play`} busy={play.isPending} onConfirm={confirm} onClose={onClose}>
      <p className="soft">
        <Trans>
          What the scheduler would have done with the jobs that came and have ended, with the policy as it is and as it
          is here. Nothing is set; it takes up to a minute.
        </Trans>
      </p>
      <PolicyFields draft={draft} onChange={anew(setDraft)} />
      <Select label={t`Jobs of`} options={WEEKS} value={weeks} onChange={anew(setWeeks)} />
      <div role="status">{play.isPending && <p className="soft"><Trans>Playing…</Trans></p>}</div>
      <Notice error={play.error} />
      {play.data !== undefined && <Outcome found={play.data} />}
    </Dialog>
  );
}

function Outcome({ found }: { found: WhatIfAnswer }) {
  const shown = useRef<HTMLElement>(null);
  useEffect(() => shown.current?.scrollIntoView({ block: "start" }), [found]);
  const { nodes, gpus } = found;
  const place = nodes > 1 ? t`${nodes} nodes of ${gpus} GPUs` : t`${gpus} GPUs`;
  return (
    <section ref={shown} aria-label={t`What came of it`}>
      <p>{played(jobsOf(found.jobs), place, found.left_out)}</p>
      <table className="plain-table what-if">
        <thead><tr><th scope="col" /><th scope="col" className="num"><Trans>As it is</Trans></th><th scope="col" className="num"><Trans>If</Trans></th></tr></thead>
        <tbody>
          {FIGURES.map(({ label, of }) => (
            <tr key={label}>
              <th scope="row">{label}</th><td className="num">{of(found.before)}</td><td className="num">{of(found.after)}</td>
            </tr>
          ))}
          <tr className="group-head"><th colSpan={3} scope="colgroup"><Trans>Mean wait by user</Trans></th></tr>
          {found.users.map((one) => (
            <tr key={one.user}>
              <th scope="row">{one.user} <span className="faint">{jobsOf(one.jobs)}</span></th>
              <td className="num">{duration(one.mean_wait_before_s)}</td>
              <td className="num">{duration(one.mean_wait_after_s)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const jobsOf = (count: number) => plural(count, { one: "# job", other: "# jobs" });

function played(jobs: string, place: string, count: number): string {
  if (count === 0) return t`${jobs} on ${place}.`;
  const others = jobsOf(count);
  return t`${jobs} on ${place}; ${others} left out, which no longer fit.`;
}
