import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useCallback, useEffect, useMemo, useRef, useState } from "react";

import { jobsBetween, lastPage, PAGE, type PageOf, type Place, useFollowing, usePages } from "../api/table";
import type { Job } from "../api/types";
import { type Column, COLUMNS, FIRST, NARROW } from "../lib/columns";
import { number, sentence } from "../lib/format";
import type { Key } from "../lib/jobQuery";
import { nextOrder, type Order, sortOf } from "../lib/orders";
import { goesOn, type Line, lineAt, lineCount, rowKeys, type Section } from "../lib/sections";
import { Notice } from "../ui/Notice";
import { useNow } from "../ui/useNow";
import { useResource } from "../ui/useResource";
import { BulkBar } from "./BulkBar";
import { JobLine, type Tick } from "./JobLine";
import { useNarrow } from "../ui/useNarrow";

interface Props {
  sections: readonly Section[];
  /** Parts are closed at first. */
  folded: boolean;
  columns: readonly Column[];
  order: Order;
  onOrder: (order: Order) => void;
  onFilter: (key: Key, value: string) => void;
  onMetrics: (names: readonly string[]) => void;
}

/** Height of a row in pixels. */
const ROW = 32;
const MOVES: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
/** Jobs that one click of a range ticks at most. */
const MOST_TICKED = 2_000;
const NONE: ReadonlySet<string> = new Set();

/**
 * The list, which goes on as it is scrolled, and of which only what is in view is read and drawn.
 *
 * Arrow keys (or j and k) walk along the names.
 */
export function JobsTable({ sections: asked, folded, columns, order, onOrder, onFilter, onMetrics }: Props) {
  const now = useNow();
  const cache = useQueryClient();
  const narrow = useNarrow();
  const { many } = useResource();
  const frame = useRef<HTMLDivElement>(null);
  const [toggled, setToggled] = useState(NONE);
  const [ticked, setTicked] = useState<ReadonlyMap<string, Job>>(new Map());
  const [failure, setFailure] = useState<unknown>(null);
  const last = useRef<Place & { section: string } | null>(null);
  const { parts: sections, tell } = useFollowing(asked);
  const closed = useMemo(
    () => new Set(asked.map(({ key }) => key).filter((key) => toggled.has(key) !== folded)),
    [asked, toggled, folded],
  );
  const count = lineCount(sections, closed);
  // eslint-disable-next-line react-hooks/incompatible-library -- its rows are read anew in each rendering
  const rows = useVirtualizer({
    count, getScrollElement: () => frame.current, estimateSize: () => ROW, overscan: 12,
  }).getVirtualItems();
  const lines = rows.map((row) => ({ row, line: lineAt(sections, closed, row.index) }));
  const { jobs, following, error } = usePages(pagesOf(lines.map(({ line }) => line)));
  const keys = rowKeys(lines.map(({ line }) => line), jobs);
  useEffect(() => {
    for (const section of sections) {
      const end = following.get(section.key);
      if (end !== undefined && goesOn({ ...section, more: true })) void tell(section, end);
    }
  });
  const metrics = [...new Set([...jobs.values()].flatMap(({ latest }) => Object.keys(latest)))].sort().join("\n");
  useEffect(() => onMetrics(metrics === "" ? [] : metrics.split("\n")), [metrics, onMetrics]);
  const shown = narrow ? NARROW : columns;
  const tracks = [...FIRST, ...COLUMNS.filter(({ key }) => shown.includes(key)).map(({ width }) => width)];

  const goOn = (key: Key, value: string) => {
    frame.current?.scrollTo({ top: 0 });
    onFilter(key, value);
  };
  const toggle = (key: string) => {
    const next = new Set(toggled);
    if (!next.delete(key)) next.add(key);
    setToggled(next);
  };
  const tick = async (section: Section, place: number, job: Job, range: boolean) => {
    const clicked = { job: job.id, place };
    const from = range && last.current?.section === section.key ? last.current : clicked;
    last.current = { section: section.key, ...clicked };
    const some = from.job === job.id ? null : await jobsBetween(cache, section, from, clicked, MOST_TICKED);
    // From what is ticked once they are read: it may be more than before.
    setTicked((known) => {
      const next = new Map(known);
      if (some === null && next.delete(job.id)) return next;
      for (const one of some ?? [job]) next.set(one.id, one);
      return next;
    });
  };
  const ticking = useRef<Tick>(() => undefined);
  useEffect(() => {
    ticking.current = (...clicked) => void tick(...clicked).then(() => setFailure(null), setFailure);
  });
  const onTick = useCallback<Tick>((...clicked) => ticking.current(...clicked), []);
  const tickAll = async (section: Section) => {
    const all = await jobsBetween(cache, section, { place: 0 }, { place: Math.max(0, section.count - 1) }, MOST_TICKED);
    setTicked((known) => {
      const next = new Map(known);
      const whole = all.every(({ id }) => next.has(id));
      for (const job of all) {
        if (whole) next.delete(job.id);
        else next.set(job.id, job);
      }
      return next;
    });
  };
  if (sections.length === 0 && ticked.size === 0) return null;
  const selected = [...ticked.values()].map((job) => [...jobs.values()].find(({ id }) => id === job.id) ?? job);
  return (
    <div className="panel jobs-panel">
      <BulkBar jobs={selected} onClear={() => setTicked(new Map())} />
      <Notice error={error ?? failure} />
      <div
        ref={frame}
        className="jobs-frame"
        role="table"
        aria-label={t`Jobs`}
        aria-rowcount={count + 1}
        tabIndex={0}
        style={{ "--tracks": tracks.join(" "), maxHeight: `max(320px, calc(100vh - 190px))` } as React.CSSProperties}
        onKeyDown={walk}
      >
        <div role="rowgroup" className="jobs-titles">
          <div role="row" className="line" aria-rowindex={1}>
            <span role="columnheader"><span className="hidden-words"><Trans>Ticked</Trans></span></span>
            <Head column="name" label={t`Job`} order={order} onOrder={onOrder} />
            {COLUMNS.filter(({ key }) => shown.includes(key)).map(({ key, label }) => (
              <Head
                key={key}
                column={key}
                label={key === "resources" ? sentence(many) : label}
                order={order}
                onOrder={onOrder}
              />
            ))}
          </div>
        </div>
        <div role="rowgroup" className="jobs-lines" style={{ height: count * ROW }}>
          {lines.map(({ row, line }, at) => {
            const style = { transform: `translateY(${row.start}px)` };
            if (line === null) return null;
            const { section } = line;
            if (line.kind === "head") {
              return (
                <div key={section.key} role="row" className="line line-head" aria-rowindex={row.index + 2} style={style}>
                  <span role="cell">
                    <input
                      type="checkbox"
                      aria-label={t`Tick all of ${{ title: section.title }}`}
                      title={t`Tick all, or the first ${{ most: number(MOST_TICKED) }}`}
                      checked={false}
                      onChange={() => void tickAll(section).then(() => setFailure(null), setFailure)}
                    />
                  </span>
                  <span role="cell" className="line-title">
                    <button type="button" aria-expanded={!closed.has(section.key)} onClick={() => toggle(section.key)}>
                      <i aria-hidden="true" /> <b>{section.title}</b> <span className="faint">{jobsOf(sections, section)}</span>
                    </button>
                    {section.query.group !== undefined && (
                      <Link
                        to="/sweeps/$sweepId"
                        params={{ sweepId: section.query.group }}
                        aria-label={t`Open sweep ${{ name: section.title.replace(/^\d+ /, "") }}`}
                      >
                        <Trans>open</Trans>
                      </Link>
                    )}
                  </span>
                </div>
              );
            }
            if (line.kind === "more") {
              return (
                <div key={`${section.key} more`} role="row" className="line line-more" aria-rowindex={row.index + 2} style={style}>
                  <span role="cell" />
                  <span role="cell"><More section={section} next={following.get(section.key)} onFilter={goOn} /></span>
                </div>
              );
            }
            const job = jobs.get(`${section.key} ${line.place}`);
            return (
              <JobLine
                key={keys[at]}
                job={job}
                index={row.index}
                section={section}
                place={line.place}
                start={row.start}
                columns={shown}
                now={now}
                ticked={job !== undefined && ticked.has(job.id)}
                onTick={onTick}
                onFilter={onFilter}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface HeadProps {
  column: Column | "name";
  label: string;
  order: Order;
  onOrder: (order: Order) => void;
}

/** The head of a column, which orders the list where the service can. */
function Head({ column, label, order, onOrder }: HeadProps) {
  const next = nextOrder(column, order);
  const sort = sortOf(column, order);
  return (
    <span role="columnheader" data-column={column} aria-sort={sort}>
      {next === null
        ? label
        : (
            <button type="button" className="sorter" onClick={() => onOrder(next)}>
              {label}<span aria-hidden="true">{sort === undefined ? "" : sort === "ascending" ? " ↑" : " ↓"}</span>
            </button>
          )}
    </span>
  );
}

/** How many jobs there are under a head. */
function jobsOf(sections: readonly Section[], { key }: Section): string {
  const parts = sections.filter((one) => one.key === key || one.follows?.key === key);
  const count = parts.reduce((all, part) => all + part.count, 0);
  const more = parts.some((part) => part.more);
  return more ? t`${{ count: number(count) }}+ jobs` : plural(count, { one: "# job", other: "# jobs" });
}

/** The way on to jobs that the list does not reach: before the last one, or after it where the oldest come first. */
function More({ section, next, onFilter }: { section: Section; next: string | undefined } & Pick<Props, "onFilter">) {
  const { order } = section.query;
  if (goesOn(section)) return <span className="faint"><Trans>More is being read…</Trans></span>;
  if ((order !== "newest" && order !== "oldest") || next === undefined) {
    return <span className="faint"><Trans>There may be more: narrow the search</Trans></span>;
  }
  const key = order === "newest" ? "before" : "after";
  return (
    <button type="button" className="plain" onClick={() => onFilter(key, next)}>
      {order === "newest" ? t`Look among older jobs` : t`Look among newer jobs`}
    </button>
  );
}

/** The pages that hold the jobs in view. */
function pagesOf(lines: readonly (Line | null)[]): PageOf[] {
  const found = new Map<string, PageOf>();
  for (const line of lines) {
    if (line === null || line.kind === "head") continue;
    const page = line.kind === "more" ? lastPage(line.section) : Math.floor(line.place / PAGE);
    found.set(`${line.section.key} ${page}`, { section: line.section, page });
  }
  return [...found.values()];
}

function walk(event: KeyboardEvent<HTMLElement>) {
  const move = MOVES[event.key];
  const at = (event.target as Element).closest("a.job-name");
  if (move === undefined || (at === null && event.target !== event.currentTarget)) return;
  event.preventDefault();
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("a.job-name")]
    .sort((a, b) => indexOf(a) - indexOf(b));
  links[links.findIndex((link) => link === at) + move]?.focus();
}

const indexOf = (link: Element) => Number(link.closest("[aria-rowindex]")?.getAttribute("aria-rowindex") ?? 0);
