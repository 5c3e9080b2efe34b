import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";

import { useTimeline } from "../api/box";
import { useMine } from "../api/mine";
import type { Job, TimelineJob } from "../api/types";
import { ran } from "../lib/ran";
import { isFinal } from "../lib/states";
import { Ago } from "../ui/Ago";
import { Command } from "../ui/Command";
import { Forecast } from "../ui/Forecast";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { StateChip } from "../ui/StateChip";
import { Track } from "../ui/Track";
import { useNow } from "../ui/useNow";

/** The viewer's jobs: what runs, what waits and until when, and what has just ended. */
export function Mine({ user, hours }: { user: string; hours: number }) {
  const now = useNow(10_000);
  const { mine, error } = useMine(user, now);
  const expected = new Map(useTimeline(hours).data?.jobs.map((job) => [job.number, job]));
  return (
    <Panel title={t`Mine`} className="mine">
      <Notice error={error} />
      {mine?.jobs.length === 0 && (
        <div className="pad mine-empty">
          <p className="soft">
            <Trans>
              Your jobs stand here while they run or wait, and for a day after they end.{" "}
              <Link to="/submit">Submit one here</Link>, or from a shell:
            </Trans>
          </p>
          <Command text="yard run --gpus 1 -- python train.py" />
        </div>
      )}
      <ul className="home-list">
        {mine?.jobs.map((job) => <Row key={job.id} job={job} expected={expected.get(job.number)} now={now} />)}
      </ul>
      {mine?.more === true && (
        <p className="mine-more"><Link to="/" search={{ user }} hash="jobs-heading"><Trans>More of your jobs run or wait</Trans></Link></p>
      )}
    </Panel>
  );
}

function Row({ job, expected, now }: { job: Job; expected: TimelineJob | undefined; now: number }) {
  return (
    <li>
      <StateChip state={job.state} held={job.held} blocked={job.blocked} />
      <div className="mine-job">
        <Link to="/jobs/$jobId" params={{ jobId: String(job.number) }}>{job.number} {job.name}</Link>
        {job.state === "running" && job.progress !== null && <Track progress={job.progress} moving />}
        {job.state === "queued" && expected?.expected_start_at != null && (
          <span className="soft">
            <Trans>
              starts <Forecast p50={expected.expected_start_at} p90={expected.expected_start_p90_at} now={now} />
            </Trans>
          </span>
        )}
      </div>
      <span className="faint">
        {isFinal(job.state) && job.ended_at !== null
          ? <Ago at={job.ended_at} now={now} />
          : ran(job, now)}
      </span>
    </li>
  );
}
