import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { MOST_RUNS } from "../api/compare";
import type { Group, Job } from "../api/types";
import { metric as words } from "../lib/format";
import { duration, secondsBetween } from "../lib/time";
import { type Mode, parameter, sortTrials, type Sorting } from "../lib/trials";
import { Panel } from "../ui/Panel";
import { StateChip } from "../ui/StateChip";
import { Track } from "../ui/Track";
import { useNow } from "../ui/useNow";

interface Props {
  sweep: Group;
  trials: readonly Job[];
  metric: string | null;
  mode: Mode;
  /** Reads further trials; null when all are read. */
  onMore: (() => void) | null;
}

interface Column {
  key: string;
  label: string;
  num: boolean;
}

/** The trials, in the order of the column that is clicked; again turns it round. */
export function TrialsTable({ sweep, trials, metric, mode, onMore }: Props) {
  const now = useNow();
  const [sorting, setSorting] = useState<Sorting>(
    metric === null ? { key: "trial", falling: false } : { key: "value", falling: mode === "max" },
  );
  const names = Object.keys(sweep.sweep.parameters as Record<string, unknown>);
  const sorted = sortTrials(trials, sorting, metric);
  const columns: Column[] = [
    { key: "trial", label: "Trial", num: true },
    { key: "state", label: "State", num: false },
    ...(metric === null ? [] : [{ key: "value", label: metric, num: true }]),
    ...names.map((name) => ({ key: `parameter:${name}`, label: name, num: true })),
  ];
  const sort = (key: string) => setSorting({ key, falling: sorting.key === key ? !sorting.falling : false });
  const compared = trials.slice(0, MOST_RUNS).map((trial) => trial.number).join(",");
  const tools = (
    <>
      {onMore !== null && (
        <>
          <span className="faint">{sweep.metric === null ? "the first" : "the best"} {trials.length} of {sweep.size}</span>
          <button type="button" className="button small" onClick={onMore}>Load more</button>
        </>
      )}
      {trials.length > 1 && <Link to="/compare" search={{ jobs: compared }} className="button small">Compare curves</Link>}
    </>
  );
  return (
    <Panel title="Trials" tools={tools} className="table-panel">
      <table className="trials">
        <thead>
          <tr>
            {columns.map((column) => <Head key={column.key} column={column} sorting={sorting} onSort={sort} />)}
            <th scope="col">Progress</th>
            <th scope="col" className="num">Ran</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((trial) => (
            <tr key={trial.id} data-state={trial.state} data-best={trial.id === sweep.best?.id || undefined}>
              <td className="num">
                <Link to="/jobs/$jobId" params={{ jobId: String(trial.number) }} title={trial.name}>{trial.trial}</Link>
              </td>
              <td>
                <StateChip state={trial.state} held={trial.held} blocked={trial.blocked} />
                {trial.stop === "early" && <span className="faint"> early</span>}
              </td>
              {metric !== null && <td className="num value">{told(trial, metric)}</td>}
              {names.map((name) => <td key={name} className="num">{parameter(trial.parameters?.[name] ?? null)}</td>)}
              <td className="trial-progress">
                {trial.progress !== null && <Track progress={trial.progress} moving={trial.state === "running"} />}
              </td>
              <td className="num">
                {trial.started_at !== null && duration(secondsBetween(trial.started_at, trial.ended_at, now))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

function told(trial: Job, metric: string): string {
  const value = trial.latest[metric];
  return value === undefined ? "–" : words(value);
}

function Head({ column, sorting, onSort }: { column: Column; sorting: Sorting; onSort: (key: string) => void }) {
  const here = sorting.key === column.key;
  return (
    <th
      scope="col"
      className={column.num ? "num" : undefined}
      aria-sort={here ? (sorting.falling ? "descending" : "ascending") : undefined}
    >
      <button type="button" className="sorter" onClick={() => onSort(column.key)}>
        {column.label}<span aria-hidden="true">{here ? (sorting.falling ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}
