import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef, useState } from "react";

import { MOST_RUNS } from "../api/compare";
import type { Group, Job } from "../api/types";
import { metric as words } from "../lib/format";
import { ran } from "../lib/ran";
import { type Mode, parameter, sortTrials, type Sorting } from "../lib/trials";
import { Panel } from "../ui/Panel";
import { StateChip } from "../ui/StateChip";
import { Track } from "../ui/Track";
import { useNow } from "../ui/useNow";

const ROW = 36;

interface Props {
  sweep: Group;
  trials: readonly Job[];
  /** Trials that are not among those that were read. */
  more: number;
  metric: string | null;
  mode: Mode;
  /** Which trials are selected; null for all. */
  selected: readonly boolean[] | null;
}

interface Column {
  key: string;
  label: string;
  num: boolean;
}

/** The selected trials, in the order of the column that is clicked; again turns it round. */
export function TrialsTable({ sweep, trials, more, metric, mode, selected }: Props) {
  const now = useNow();
  const [sorting, setSorting] = useState<Sorting>(
    metric === null ? { key: "trial", falling: false } : { key: "value", falling: mode === "max" },
  );
  const names = Object.keys(sweep.sweep.parameters as Record<string, unknown>);
  const shown = useMemo(
    () => sortTrials(trials.filter((_, at) => selected?.[at] ?? true), sorting, metric),
    [trials, selected, sorting, metric],
  );
  const box = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- the rows are measured on every render
  const rows = useVirtualizer({
    count: shown.length, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 12,
  });
  const drawn = rows.getVirtualItems();
  const [before, after] = [drawn[0]?.start ?? 0, rows.getTotalSize() - (drawn.at(-1)?.end ?? 0)];
  const columns: Column[] = [
    { key: "trial", label: t`Trial`, num: true },
    { key: "state", label: t`State`, num: false },
    ...(metric === null ? [] : [{ key: "value", label: metric, num: true }]),
    ...names.map((name) => ({ key: `parameter:${name}`, label: name, num: true })),
  ];
  const wide = columns.length + 2;
  const sort = (key: string) => setSorting({ key, falling: sorting.key === key ? !sorting.falling : false });
  const compared = shown.slice(0, MOST_RUNS).map((trial) => trial.number).join(",");
  const tools = (
    <>
      {more > 0 && (
        <span className="faint">
          <Trans>{{ shown: trials.length }} of {{ all: trials.length + more }} are shown</Trans>
        </span>
      )}
      {shown.length > 1 && (
        <Link to="/compare" search={{ jobs: compared }} className="button small"><Trans>Compare runs</Trans></Link>
      )}
    </>
  );
  const title = titleOf(shown.length, trials.length);
  return (
    <Panel title={title} tools={tools} className="table-panel">
      <div ref={box} className="runs-scroll" tabIndex={0} role="region" aria-label={t`Trials and their values`}>
        <table className="trials runs">
          <thead>
            <tr>
              {columns.map((column) => <Head key={column.key} column={column} sorting={sorting} onSort={sort} />)}
              <th scope="col"><Trans>Progress</Trans></th>
              <th scope="col" className="num"><Trans>Ran</Trans></th>
            </tr>
          </thead>
          <tbody>
            {before > 0 && <tr style={{ height: before }}><td colSpan={wide} /></tr>}
            {drawn.map(({ index }) => {
              const trial = shown[index];
              if (trial === undefined) return null;
              return (
                <Row
                  key={trial.id}
                  trial={trial}
                  names={names}
                  metric={metric}
                  best={trial.id === sweep.best?.id}
                  now={now}
                />
              );
            })}
            {after > 0 && <tr style={{ height: after }}><td colSpan={wide} /></tr>}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function titleOf(shown: number, all: number): string {
  if (shown === all) return t`Trials`;
  return plural(all, { one: `Trials: ${shown} of # trial`, other: `Trials: ${shown} of # trials` });
}

interface RowProps {
  trial: Job;
  names: readonly string[];
  metric: string | null;
  best: boolean;
  now: number;
}

function Row({ trial, names, metric, best, now }: RowProps) {
  return (
    <tr data-state={trial.state} data-best={best || undefined}>
      <td className="num">
        <Link to="/jobs/$jobId" params={{ jobId: String(trial.number) }} title={trial.name}>{trial.trial}</Link>
      </td>
      <td>
        <StateChip state={trial.state} held={trial.held} blocked={trial.blocked} />
        {trial.stop === "early" && <span className="faint"> <Trans>early</Trans></span>}
      </td>
      {metric !== null && <td className="num value">{told(trial, metric)}</td>}
      {names.map((name) => <td key={name} className="num">{parameter(trial.parameters?.[name] ?? null)}</td>)}
      <td className="trial-progress">
        {trial.progress !== null && <Track progress={trial.progress} moving={trial.state === "running"} />}
      </td>
      <td className="num">{ran(trial, now)}</td>
    </tr>
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
