import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useEffect, useMemo, useRef, useState } from "react";
import type uPlot from "uplot";

import { useCurves } from "../api/compare";
import { useChartKeys } from "../charts/useChartKeys";
import type { Range } from "../lib/buckets";
import { metric, number, tick } from "../lib/format";
import { wordsOf } from "../lib/metricNames";
import { type Grid, type Run, toGrid } from "../lib/runs";
import type { Axis } from "../lib/series";
import { useTheme } from "../lib/theme";
import { duration } from "../lib/time";
import { Notice } from "../ui/Notice";
import { dataOf, makePlot } from "./plot";
import type { View } from "./view";

const HEIGHT = 230;
/** Charts this far below or above what is in sight are drawn already. */
const AHEAD = "300px";

export interface ChartSettings {
  axis: Axis;
  logarithmic: boolean;
  smoothing: number;
}

interface Props {
  name: string;
  runs: readonly Run[];
  hidden: ReadonlySet<number>;
  settings: ChartSettings;
  view: View;
  /** The part of the axis to read, once the view has rested. */
  range: Range | null;
  version: string;
}

/** One metric of all runs; read and drawn once it comes into sight. */
export function RunsChart(props: Props) {
  const place = useRef<HTMLElement>(null);
  const seen = useSeen(place);
  return (
    <figure ref={place} className="chart runs-chart">
      {seen ? <Drawn {...props} /> : <figcaption><span className="chart-title">{props.name}</span></figcaption>}
    </figure>
  );
}

function useSeen(place: React.RefObject<HTMLElement | null>): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const element = place.current;
    if (element === null || seen) return;
    const watch = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) setSeen(true);
    }, { rootMargin: AHEAD });
    watch.observe(element);
    return () => watch.disconnect();
  }, [place, seen]);
  return seen;
}

function Drawn({ name, runs, hidden, settings, view, range, version }: Props) {
  const { axis, logarithmic, smoothing } = settings;
  const jobs = useMemo(() => runs.map(({ job }) => job.id), [runs]);
  const curves = useCurves({ jobs: jobs.join(","), name, axis, range, version }, jobs.length > 0);
  const grid = useMemo(
    () => (curves.data === undefined ? null : toGrid(curves.data, jobs, axis === "step")),
    [curves.data, jobs, axis],
  );
  const data = useMemo(() => (grid === null ? null : dataOf(grid, hidden, smoothing)), [grid, hidden, smoothing]);
  const readout = useRef<HTMLSpanElement>(null);
  const [canvas, plot] = usePlot({ name, runs, axis, logarithmic, view, grid, data, readout });
  const label = t`Chart of ${name} of ${{ count: runs.length }} runs`;
  const { reading, keyed } = useChartKeys(plot, label, (next) => view.show(next));
  return (
    <>
      <figcaption>
        <span className="chart-title">{name}</span>
        <span ref={readout} className="chart-at" aria-live={reading ? "polite" : "off"} />
        {curves.isRough && curves.data !== undefined && <span className="badge"><Trans>first look</Trans></span>}
      </figcaption>
      <Notice error={curves.error} />
      <div ref={canvas} className="chart-canvas" {...keyed} />
    </>
  );
}

interface Inputs {
  name: string;
  runs: readonly Run[];
  axis: Axis;
  logarithmic: boolean;
  view: View;
  grid: Grid | null;
  data: uPlot.AlignedData | null;
  readout: React.RefObject<HTMLSpanElement | null>;
}

function usePlot({ name, runs, axis, logarithmic, view, grid, data, readout }: Inputs) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef({ grid, data });
  const [theme] = useTheme();
  const ready = data !== null;
  useEffect(() => {
    latest.current = { grid, data };
  }, [grid, data]);
  useEffect(() => {
    const element = place.current;
    const first = latest.current.data;
    if (element === null || first === null || !ready) return;
    const words = wordsOf(name);
    const made = makePlot(element, {
      runs, byStep: axis === "step", logarithmic, width: element.clientWidth, height: HEIGHT, view, words: words ?? tick,
      onHover: (row, run) => {
        if (readout.current === null) return;
        readout.current.textContent = told(latest.current.grid, runs, { axis, words: words ?? metric }, row, run);
      },
    }, first);
    plot.current = made;
    const stop = followInSight(element, made, view);
    const resize = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    resize.observe(element);
    return () => {
      stop();
      resize.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [name, runs, axis, logarithmic, view, theme, ready, readout]);
  useEffect(() => {
    if (data !== null) plot.current?.setData(data);
  }, [data]);
  return [place, plot] as const;
}

/** Moves the chart with the view: in the next frames while it is in sight, else when it comes there. */
function followInSight(element: Element, plot: uPlot, view: View): () => void {
  let inSight = true;
  let late = false;
  const draw = () => show(plot, view.range);
  const watch = new IntersectionObserver((entries) => {
    inSight = entries.at(-1)?.isIntersecting ?? true;
    if (inSight && late) {
      late = false;
      view.frames.ask(draw);
    }
  });
  watch.observe(element);
  const stop = view.subscribe((_, mover) => {
    if (inSight) view.frames.ask(draw, mover === plot);
    else late = true;
  });
  return () => {
    stop();
    view.frames.drop(draw);
    watch.disconnect();
  };
}

/** Draws at once: uPlot by itself would draw after the frame's time has been taken. */
function show(plot: uPlot, range: Range | null): void {
  plot.batch(() => {
    if (range !== null) plot.setScale("x", { min: range.start, max: range.end });
    else plot.setData(plot.data);
  });
}

/** What is under the pointer: the step, and the run that is nearest with its value. */
function told(
  grid: Grid | null,
  runs: readonly Run[],
  { axis, words }: { axis: Axis; words: (value: number) => string },
  row: number | null,
  at: number | null,
): string {
  if (grid === null || row === null) return "";
  const place = where(grid, axis, row);
  const job = at === null ? undefined : runs[at]?.job;
  const value = at === null ? null : valueAt(grid, at, row, words);
  return job === undefined || value === null ? place : t`${{ number: job.number }} ${{ name: job.name }} ${value}, ${place}`;
}

function where(grid: Grid, axis: Axis, row: number): string {
  const from = (grid.first + row) * grid.width;
  if (axis === "time") return t`after ${{ time: duration(from) }}`;
  const last = from + grid.width - 1;
  const step = number(from);
  return grid.width === 1 ? t`step ${step}` : t`steps ${{ from: step }} to ${{ to: number(last) }}`;
}

/** The mean, and the bounds where it stands for several values. */
function valueAt(grid: Grid, at: number, row: number, words: (value: number) => string): string | null {
  const mean = grid.mean[at]?.[row];
  if (typeof mean !== "number") return null;
  const [low, high] = [grid.low[at]?.[row] ?? mean, grid.high[at]?.[row] ?? mean];
  const shown = words(mean);
  return low === high ? shown : t`${shown} (${{ low: words(low) }} to ${{ high: words(high) }})`;
}
