import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";

import { useSettings } from "../api/session";
import { useSweep } from "../api/sweeps";
import type { Job } from "../api/types";
import { bytes, metric } from "../lib/format";
import { headline } from "../lib/headline";
import { priorityLabel } from "../lib/priorities";
import { ran } from "../lib/ran";
import { counted, type Resource, resourceOf } from "../lib/resources";
import { keptUntil } from "../lib/states";
import { parameter } from "../lib/trials";
import { StateChip } from "../ui/StateChip";
import { Time } from "../ui/Time";
import { Track } from "../ui/Track";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";
import { Actions } from "./Actions";

export function Header({ job }: { job: Job }) {
  return (
    <header className="job-head">
      <div className="job-title">
        <span className="job-number">{job.number}</span>
        <h1>{job.name}</h1>
        <StateChip state={job.state} held={job.held} blocked={job.blocked} />
        <Actions job={job} />
      </div>
      {job.progress !== null && <Track progress={job.progress} moving={job.state === "running"} />}
      <Facts job={job} />
    </header>
  );
}

function Facts({ job }: { job: Job }) {
  const until = keptUntil(job, useSettings().data?.keep_ended_s ?? null);
  const { storage } = job;
  return (
    <dl className="facts">
      <Fact name={t`User`}>{job.user}</Fact>
      <Fact name={t`Project`}><Link to="/" search={{ project: job.project }}>{job.project}</Link></Fact>
      <Fact name={t`Priority`}>{priorityLabel(job.priority)}</Fact>
      <Fact name={job.devices.length > 0 ? t`Runs on` : t`Asks for`}>{devicesOf(job, useResource())}</Fact>
      <Fact name={t`Submitted`}><Time at={job.created_at} /></Fact>
      <Ran job={job} />
      {job.attempt > 1 && <Fact name={t`Attempt`}>{job.attempt}</Fact>}
      {headline(job.latest).map(([name, value]) => <Fact key={name} name={name}>{metric(value)}</Fact>)}
      {job.discarded_at == null && (
        <Fact name={t`Storage`}>{bytes(storage.checkpoints + storage.outputs + storage.logs)}</Fact>
      )}
      {until !== null && <Fact name={t`Files kept until`}><Time at={until} /></Fact>}
      {job.group != null && <OfSweep group={job.group} trial={job.trial} />}
      {Object.entries(job.parameters ?? {}).map(([name, value]) => (
        <Fact key={`parameter ${name}`} name={name}>{parameter(value)}</Fact>
      ))}
      {job.rerun_of !== null && <Fact name={t`Rerun of`}><JobLink id={job.rerun_of} /></Fact>}
      {job.tags.length > 0 && (
        <Fact name={t`Tags`}>
          {job.tags.map((tag) => <Link key={tag} to="/" search={{ tag }} className="tag">{tag}</Link>)}
        </Fact>
      )}
    </dl>
  );
}

function Ran({ job }: { job: Job }) {
  const time = ran(job, useNow());
  return time === null ? null : <Fact name={t`Ran`}>{time}</Fact>;
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return <div><dt>{name}</dt><dd>{children}</dd></div>;
}

/** The sweep of a trial. */
function OfSweep({ group, trial }: { group: string; trial: number | null | undefined }) {
  const sweep = useSweep(group).data;
  return (
    <Fact name={t`Trial of`}>
      <Link to="/sweeps/$sweepId" params={{ sweepId: sweep === undefined ? group : String(sweep.number) }}>
        {sweep === undefined ? t`its sweep` : `${sweep.number} ${sweep.name}`}
      </Link>
      {trial != null && (
        <span className="faint">
          {sweep === undefined ? t`no. ${trial}` : t`no. ${trial} of ${{ size: sweep.size }}`}
        </span>
      )}
    </Fact>
  );
}

function JobLink({ id }: { id: string }) {
  return <Link to="/jobs/$jobId" params={{ jobId: id }}><Trans>the job before</Trans></Link>;
}

function devicesOf(job: Job, resource: Resource): string {
  if (job.devices.length === 0) return job.gpus === 0 ? t`no ${{ resource: resource.one }}` : counted(job.gpus, resource);
  const { one, many } = resourceOf([job]);
  const nodes = [...new Set(job.devices.map((device) => device.node))];
  return nodes.map((node) => {
    const places = job.devices.filter((device) => device.node === node).map((device) => device.index);
    return t`${node}, ${{ devices: places.length > 1 ? many : one }} ${{ places: places.join(", ") }}`;
  }).join("; ");
}
