import { t } from "@lingui/core/macro";
import { Link } from "@tanstack/react-router";
import { memo, type ReactNode } from "react";

import type { Job } from "../api/types";
import type { Column } from "../lib/columns";
import { metric } from "../lib/format";
import { headline } from "../lib/headline";
import type { Key } from "../lib/jobQuery";
import { priorityLabel } from "../lib/priorities";
import { ran } from "../lib/ran";
import type { Section } from "../lib/sections";
import { age, secondsBetween } from "../lib/time";
import { placeOf } from "../lib/waiting";
import { StateChip } from "../ui/StateChip";
import { Time } from "../ui/Time";
import { Track } from "../ui/Track";
import { FilterWord } from "./FilterWord";

export type Tick = (section: Section, place: number, job: Job, range: boolean) => void;

interface Props {
  /** Undefined while it is read. */
  job: Job | undefined;
  index: number;
  /** The part of the list and the place in it. */
  section: Section;
  place: number;
  /** Pixels above it. */
  start: number;
  columns: readonly Column[];
  now: number;
  ticked: boolean;
  onTick: Tick;
  onFilter: (key: Key, value: string) => void;
}

/** A job as one row, which is not rendered anew while others are scrolled in and out. */
export const JobLine = memo(function JobLine(props: Props) {
  const { job, index, section, place, start, columns, now, ticked, onTick, onFilter } = props;
  const style = { transform: `translateY(${start}px)` };
  const row = { role: "row", className: "line", "aria-rowindex": index + 2, style } as const;
  if (job === undefined) return <div {...row} data-unread><span role="cell" /></div>;
  return (
    <div {...row} data-state={job.state} data-ticked={ticked || undefined}>
      <span role="cell">
        <input
          type="checkbox"
          aria-label={t`Tick job ${{ number: job.number }}`}
          checked={ticked}
          onChange={({ nativeEvent }) => onTick(section, place, job, (nativeEvent as MouseEvent).shiftKey)}
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
});

type Cell = (job: Job, now: number, onFilter: Props["onFilter"]) => ReactNode;

const CELLS: Record<Column, Cell> = {
  state: (job) => (
    <>
      <StateChip state={job.state} held={job.held} blocked={job.blocked} />
      {placeOf(job) !== null && <span className="place" title={t`Place in the queue`}>{placeOf(job)}</span>}
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
  priority: ({ priority }) => priorityLabel(priority),
  resources: ({ gpus }) => gpus,
  progress: ({ progress, state }) => progress !== null && <Track progress={progress} moving={state === "running"} />,
  latest: ({ latest }) => headline(latest).map(([name, value]) => (
    <span key={name} className="latest" title={`${name} ${metric(value)}`} data-odd={typeof value === "string" || undefined}>
      <span className="faint">{name}</span> <span>{metric(value)}</span>
    </span>
  )),
  ran,
  age: ({ created_at: at }, now) => <Time at={at}>{age(secondsBetween(at, null, now))}</Time>,
};
