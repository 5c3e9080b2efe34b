import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { Fragment, useMemo, useRef, useState } from "react";

import type { Job } from "../api/types";
import { download } from "../lib/download";
import { bestOf, type Ends } from "../lib/ends";
import { valueOf } from "../lib/metricNames";
import { type Run, toCsv } from "../lib/runs";
import { likelyMode } from "../lib/trials";
import { Panel } from "../ui/Panel";
import { StateChip } from "../ui/StateChip";

const ROW = 36;

interface Props {
  jobs: readonly Job[];
  runs: readonly Run[];
  metrics: readonly string[];
  /** Undefined until they have been read. */
  ends: Ends | undefined;
  /** Runs that are not ticked, and those that a brush leaves out. */
  hidden: ReadonlySet<number>;
  brushedOut: ReadonlySet<number>;
  onHidden: (hidden: ReadonlySet<number>) => void;
  onRemove: (job: Job) => void;
}

interface Values {
  final: number | string | undefined;
  best: number | undefined;
}

interface Line {
  job: Job;
  run: Run;
  values: Values[];
}

type Sorting = { key: "number" | "name" | "user" | "state" } | { key: "final" | "best"; metric: number };

/** The runs with what their metrics came to, in the order of a column. */
export function RunsTable({ jobs, runs, metrics, ends, hidden, brushedOut, onHidden, onRemove }: Props) {
  const [sorting, setSorting] = useState<{ by: Sorting; falling: boolean }>({ by: { key: "number" }, falling: false });
  const lines = useMemo(() => linesOf(jobs, runs, metrics, ends), [jobs, runs, metrics, ends]);
  const sorted = useMemo(() => sort(lines, sorting.by, sorting.falling), [lines, sorting]);
  const box = useRef<HTMLDivElement>(null);
  // eslint-disable-next-line react-hooks/incompatible-library -- the rows are measured on every render
  const rows = useVirtualizer({
    count: sorted.length, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 12,
  });
  const drawn = rows.getVirtualItems();
  const [before, after] = [drawn[0]?.start ?? 0, rows.getTotalSize() - (drawn.at(-1)?.end ?? 0)];
  const head = (by: Sorting, label: string, num = false) => {
    const here = JSON.stringify(by) === JSON.stringify(sorting.by);
    return (
      <th
        scope="col"
        className={num ? "num" : undefined}
        aria-sort={here ? (sorting.falling ? "descending" : "ascending") : undefined}
      >
        <button type="button" className="sorter" onClick={() => setSorting({ by, falling: here && !sorting.falling })}>
          {label}<span aria-hidden="true">{here ? (sorting.falling ? " ↓" : " ↑") : ""}</span>
        </button>
      </th>
    );
  };
  const toggle = (index: number) => {
    const next = new Set(hidden);
    if (!next.delete(index)) next.add(index);
    onHidden(next);
  };
  const isOut = ({ index }: Run) => hidden.has(index) || brushedOut.has(index);
  const save = () => download("runs.csv", csv(sorted, metrics), "text/csv");
  const columns = 5 + 2 * metrics.length;
  const tools = (
    <>
      {hidden.size > 0 && (
        <button type="button" className="button small" onClick={() => onHidden(new Set())}>
          <Trans>Show all runs</Trans>
        </button>
      )}
      <button type="button" className="button small" onClick={save}>CSV</button>
    </>
  );
  return (
    <Panel title={t`${{ count: jobs.length }} runs`} tools={tools} className="table-panel">
      <div ref={box} className="runs-scroll" tabIndex={0} role="region" aria-label={t`Runs and their metrics`}>
        <table className="trials runs">
          <thead>
            <tr>
              <th scope="col"><span className="visually-hidden"><Trans>Shown</Trans></span></th>
              {head({ key: "number" }, t`No.`, true)}
              {head({ key: "name" }, t`Run`)}
              {head({ key: "state" }, t`State`)}
              {head({ key: "user" }, t`User`)}
              {metrics.map((name, at) => (
                <Fragment key={name}>
                  {head({ key: "final", metric: at }, t`${name} final`, true)}
                  {head({ key: "best", metric: at }, likelyMode(name) === "max" ? t`best (max)` : t`best (min)`, true)}
                </Fragment>
              ))}
            </tr>
          </thead>
          <tbody>
            {before > 0 && <tr style={{ height: before }}><td colSpan={columns} /></tr>}
            {drawn.map(({ index }) => {
              const line = sorted[index];
              if (line === undefined) return null;
              const { job, run, values } = line;
              return (
                <tr key={job.id} data-state={job.state} data-hidden={isOut(run) || undefined}>
                  <td>
                    <input
                      type="checkbox"
                      className="run-tick"
                      style={{ accentColor: run.color }}
                      checked={!isOut(run)}
                      disabled={brushedOut.has(run.index)}
                      onChange={() => toggle(run.index)}
                      aria-label={t`Show run ${{ number: job.number }}`}
                    />
                    <i className="run-color" style={{ background: run.color }} aria-hidden="true" />
                  </td>
                  <td className="num">{job.number}</td>
                  <td className="run-name">
                    <Link to="/jobs/$jobId" params={{ jobId: String(job.number) }}>{job.name}</Link>
                    <button
                      type="button"
                      className="run-remove"
                      aria-label={t`Leave out run ${{ number: job.number }}`}
                      onClick={(event) => {
                        focusNeighbour(event.currentTarget);
                        onRemove(job);
                      }}
                    >
                      ×
                    </button>
                  </td>
                  <td><StateChip state={job.state} held={job.held} blocked={job.blocked} /></td>
                  <td>{job.user}</td>
                  {values.map(({ final, best }, at) => {
                    const words = (value: number | string) => valueOf(metrics[at] ?? "", value);
                    return (
                      <Fragment key={metrics[at]}>
                        <td className="num value">{final === undefined ? "–" : words(final)}</td>
                        <td className="num">{best === undefined ? (ends === undefined ? "…" : "–") : words(best)}</td>
                      </Fragment>
                    );
                  })}
                </tr>
              );
            })}
            {after > 0 && <tr style={{ height: after }}><td colSpan={columns} /></tr>}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

function linesOf(
  jobs: readonly Job[], runs: readonly Run[], metrics: readonly string[], ends: Ends | undefined,
): Line[] {
  return runs.flatMap((run) => {
    const job = jobs.find((one) => one.id === run.job.id);
    if (job === undefined) return [];
    const values = metrics.map((name) => (
      { final: job.latest[name], best: ends === undefined ? undefined : bestOf(ends, job.id, name) }
    ));
    return [{ job, run, values }];
  });
}

/** Moves the focus to the same button of the next row, else of the one before: it would be lost with its own. */
function focusNeighbour(button: HTMLElement): void {
  const row = button.closest("tr");
  const rows = [row?.nextElementSibling, row?.previousElementSibling];
  rows.map((each) => each?.querySelector<HTMLElement>(".run-remove")).find(Boolean)?.focus();
}

/** Lines in order of a column; what has no value comes last either way. */
function sort(lines: readonly Line[], by: Sorting, falling: boolean): Line[] {
  const cell = ({ job, values }: Line): string | number | undefined => {
    if (by.key === "final" || by.key === "best") {
      const value = values[by.metric]?.[by.key];
      return typeof value === "number" ? value : undefined;
    }
    return job[by.key];
  };
  const sign = falling ? -1 : 1;
  return lines.toSorted((one, other) => {
    const [a, b] = [cell(one), cell(other)];
    if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
    return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  });
}

function csv(lines: readonly Line[], metrics: readonly string[]): string {
  const head = ["number", "name", "state", "user", ...metrics.flatMap((name) => [`${name} final`, `${name} best`])];
  const rows = lines.map(({ job, values }) => [
    job.number, job.name, job.state, job.user, ...values.flatMap(({ final, best }) => [final, best]),
  ]);
  return toCsv([head, ...rows]);
}
