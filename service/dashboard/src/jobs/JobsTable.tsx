import { Link } from "@tanstack/react-router";
import { type KeyboardEvent, useRef } from "react";

import type { Job } from "../api/types";
import { metric } from "../lib/format";
import { headline } from "../lib/headline";
import type { Row } from "../lib/rows";
import { age, duration, secondsBetween } from "../lib/time";
import { StateChip } from "../ui/StateChip";
import { Time } from "../ui/Time";
import { Track } from "../ui/Track";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";
import { FilterWord } from "./FilterWord";
import { SweepRow } from "./SweepRow";

interface Props {
  rows: readonly Row[];
  onFilter: (change: Record<string, string | undefined>) => void;
}

const MOVES: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

/** The list; arrow keys (or j and k) walk along the names, Enter opens one. */
export function JobsTable({ rows, onFilter }: Props) {
  const now = useNow();
  const resource = useResource();
  const body = useRef<HTMLTableSectionElement>(null);
  const walk = (event: KeyboardEvent) => {
    const move = MOVES[event.key];
    const links = [...(body.current?.querySelectorAll<HTMLAnchorElement>("a.job-name") ?? [])];
    const at = links.findIndex((link) => link === document.activeElement);
    if (move === undefined || at < 0) return;
    event.preventDefault();
    links[at + move]?.focus();
  };
  return (
    <div className="panel table-panel">
      <table className="jobs">
        <thead>
          <tr>
            <th scope="col" className="num">No.</th>
            <th scope="col">Job</th>
            <th scope="col">State</th>
            <th scope="col" className="num">{resource.many}</th>
            <th scope="col">Progress</th>
            <th scope="col">Latest</th>
            <th scope="col" className="num">Ran</th>
            <th scope="col" className="num">Age</th>
          </tr>
        </thead>
        <tbody ref={body} onKeyDown={walk}>
          {rows.map((row) => (
            row.kind === "job"
              ? <JobRow key={row.job.id} job={row.job} now={now} onFilter={onFilter} />
              : <SweepRow key={row.sweep.id} sweep={row.sweep} now={now} onFilter={onFilter} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function JobRow({ job, now, onFilter }: { job: Job; now: number; onFilter: Props["onFilter"] }) {
  return (
    <tr data-state={job.state}>
      <td className="num faint cell-number">{job.number}</td>
      <td className="cell-name">
        <Link to="/jobs/$jobId" params={{ jobId: String(job.number) }} className="job-name">{job.name}</Link>
        <div className="who">
          <FilterWord label={job.user} title={`Jobs of ${job.user}`} onClick={() => onFilter({ user: job.user })} />
          <span aria-hidden="true">·</span>
          <FilterWord
            label={job.project}
            title={`Jobs of project ${job.project}`}
            onClick={() => onFilter({ project: job.project })}
          />
          {job.tags.map((tag) => (
            <FilterWord key={tag} tag label={tag} title={`Jobs with tag ${tag}`} onClick={() => onFilter({ tag })} />
          ))}
        </div>
      </td>
      <td className="cell-state"><StateChip state={job.state} held={job.held} blocked={job.blocked} /></td>
      <td className="num cell-gpus">{job.gpus}</td>
      <td className="cell-progress">
        {job.progress !== null && <Track progress={job.progress} moving={job.state === "running"} />}
      </td>
      <td className="cell-latest">
        {headline(job.latest).map(([name, value]) => (
          <span key={name} className="latest" data-odd={typeof value === "string" || undefined}>
            <span className="faint">{name}</span> {metric(value)}
          </span>
        ))}
      </td>
      <td className="num cell-ran">
        {job.started_at !== null && duration(secondsBetween(job.started_at, job.ended_at, now))}
      </td>
      <td className="num faint cell-age">
        <Time at={job.created_at}>{age(secondsBetween(job.created_at, null, now))}</Time>
      </td>
    </tr>
  );
}
