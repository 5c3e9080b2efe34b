import { t } from "@lingui/core/macro";
import { Link } from "@tanstack/react-router";
import type { CSSProperties, ReactNode } from "react";

import type { Job } from "../api/types";
import type { Column } from "../lib/columns";
import { metric } from "../lib/format";
import { headline } from "../lib/headline";
import type { Key } from "../lib/jobQuery";
import { age, duration, secondsBetween } from "../lib/time";
import { StateChip } from "../ui/StateChip";
import { Time } from "../ui/Time";
import { Track } from "../ui/Track";
import { FilterWord } from "./FilterWord";

interface Props {
  /** Undefined while it is read. */
  job: Job | undefined;
  index: number;
  style: CSSProperties;
  columns: readonly Column[];
  now: number;
  ticked: boolean;
  onTick: (range: boolean) => void;
  onFilter: (key: Key, value: string) => void;
}

/** A job as one row. */
export function JobLine({ job, index, style, columns, now, ticked, onTick, onFilter }: Props) {
  const row = { role: "row", className: "line", "aria-rowindex": index + 2, style } as const;
  if (job === undefined) return <div {...row} data-unread><span role="cell" /></div>;
  return (
    <div {...row} data-state={job.state} data-ticked={ticked || undefined}>
      <span role="cell">
        <input
          type="checkbox"
          aria-label={t`Tick job ${{ number: job.number }}`}
          checked={ticked}
          onChange={({ nativeEvent }) => onTick((nativeEvent as MouseEvent).shiftKey)}
        />
      </span>
      <span role="cell" className="line-name">
        <span className="faint">{job.number}</span>{" "}
        <Link to="/jobs/$jobId" params={{ jobId: String(job.number) }} className="job-name" title={job.name}>{job.name}</Link>
      </span>
      {columns.map((column) => (
        <span key={column} role="cell" data-column={column}>{CELLS[column](job, now, onFilter)}</span>
      ))}
    </div>
  );
}

type Cell = (job: Job, now: number, onFilter: Props["onFilter"]) => ReactNode;

const CELLS: Record<Column, Cell> = {
  state: (job) => (
    <>
      <StateChip state={job.state} held={job.held} blocked={job.blocked} />
      {job.place != null && <span className="place" title={t`Place in the queue`}>{job.place}</span>}
    </>
  ),
  user: ({ user }, _, onFilter) => (
    <FilterWord label={user} title={t`Jobs of ${user}`} onClick={() => onFilter("user", user)} />
  ),
  project: ({ project }, _, onFilter) => (
    <FilterWord label={project} title={t`Jobs of project ${project}`} onClick={() => onFilter("project", project)} />
  ),
  tags: ({ tags }, _, onFilter) => tags.map((tag) => (
    <FilterWord key={tag} tag label={tag} title={t`Jobs with tag ${tag}`} onClick={() => onFilter("tag", tag)} />
  )),
  priority: ({ priority }) => priority,
  resources: ({ gpus }) => gpus,
  progress: ({ progress, state }) => progress !== null && <Track progress={progress} moving={state === "running"} />,
  latest: ({ latest }) => headline(latest).map(([name, value]) => (
    <span key={name} className="latest" data-odd={typeof value === "string" || undefined}>
      <span className="faint">{name}</span> {metric(value)}
    </span>
  )),
  ran: ({ started_at: from, ended_at: to }, now) => from !== null && duration(secondsBetween(from, to, now)),
  age: ({ created_at: at }, now) => <Time at={at}>{age(secondsBetween(at, null, now))}</Time>,
};
