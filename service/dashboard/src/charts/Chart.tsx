import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";

import type { Series } from "../api/types";
import type { Range } from "../lib/buckets";
import { metric, tick } from "../lib/format";
import { type Axis, labels as labelsOf, smooth, type Table, toTable } from "../lib/series";
import { useTheme } from "../lib/theme";
import { duration } from "../lib/time";
import { type Flag, lookOf, optionsOf } from "./options";

interface Props {
  title: string;
  series: readonly Series[];
  axis: Axis;
  logarithmic?: boolean;
  /** Weight of the past in the moving average, 0 for none. */
  smoothing?: number;
  flags?: readonly Flag[];
  height?: number;
  words?: (value: number) => string;
  /** Unix time in seconds from which the axis of time counts; the first point's if absent. */
  origin?: number;
  /** Charts of the same name share pointer and zoom. */
  sync: string;
  /** The part that is shown, null for all, as `onZoom` has told it. */
  zoom?: Range | null;
  onZoom?: (zoom: Range | null) => void;
}

const NO_FLAGS: readonly Flag[] = [];

/**
 * Lines over steps or time, with bands where a line is the mean of more points than fit. The pointer shows values,
 * dragging zooms, a double click shows all again.
 */
export function Chart(props: Props) {
  const { title, series, axis, logarithmic = false, smoothing = 0, words = metric, origin } = props;
  const [theme] = useTheme();
  const [hovered, setHovered] = useState<number | null>(null);
  const table = useMemo(
    () => toTable(series, axis, logarithmic, origin), [series, axis, logarithmic, origin],
  );
  const labels = useMemo(() => labelsOf(series), [series]);
  const place = usePlot(props, { table, labels: labels.join("\n"), theme, onHover: setHovered });
  return (
    <figure className="chart" data-smoothed={smoothing > 0 || undefined}>
      <figcaption>
        <span className="chart-title">{title}</span>
        <span className="chart-at">{where(table, hovered, axis)}</span>
      </figcaption>
      <div ref={place} className="chart-canvas" role="img" aria-label={`Chart of ${labels.join(", ")}`} />
      <ul className="legend">
        {labels.map((label, index) => (
          <li key={label} style={{ "--dot": `var(--series-${(index % 8) + 1})` } as React.CSSProperties}>
            <i aria-hidden="true" />{label} <b>{valueAt(table, series, index, hovered, words)}</b>
          </li>
        ))}
      </ul>
    </figure>
  );
}

function where(table: Table, index: number | null, axis: Axis): string {
  const x = index === null ? undefined : table.x[index];
  if (x === undefined) return "";
  const [first, last] = table.spans.get(x) ?? [x, x];
  if (axis === "time") return duration(x);
  const from = first.toLocaleString();
  return first === last ? `step ${from}` : `steps ${from} to ${last.toLocaleString()}`;
}

/** The value under the pointer, or the nearest before it; without a pointer the last one. */
function valueAt(
  table: Table, series: readonly Series[], column: number, index: number | null, words: (value: number) => string,
): string {
  if (index === null) {
    const last = lastValue(series[column]);
    return typeof last === "number" ? words(last) : last ?? "–";
  }
  const mark = table.marks.find((one) => one.series === column && one.x === table.x[index]);
  return mark?.kind ?? valueOfRow(table, column, index, words);
}

function lastValue(series: Series | undefined): number | string | undefined {
  return series?.points.at(-1)?.[2] ?? series?.buckets?.mean.at(-1);
}

/** The value in a row, or in the nearest before it; of a bucket its mean and its bounds. */
function valueOfRow(table: Table, column: number, index: number, words: (value: number) => string): string {
  const line = table.columns[column] ?? [];
  const row = line.findLastIndex((value, at) => at <= index && typeof value === "number");
  const value = line[row];
  if (typeof value !== "number") return "–";
  const { min, max } = table.held[column]?.get(table.x[row] ?? NaN) ?? { min: value, max: value };
  return min === max ? words(value) : `${words(value)} (${words(min)} to ${words(max)})`;
}

interface Inputs {
  table: Table;
  labels: string;
  theme: string;
  onHover: (index: number | null) => void;
}

function usePlot(props: Props, { table, labels, theme, onHover }: Inputs) {
  const { axis, logarithmic = false, smoothing = 0, flags = NO_FLAGS, height = 220, words = tick, sync } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const shown = useRef({ table, flags, zoom: props.zoom, onZoom: props.onZoom });
  const smoothed = smoothing > 0;
  const banded = table.bands !== null;
  const data = useMemo(() => dataOf(table, smoothing), [table, smoothing]);
  const latest = useRef(data);
  useEffect(() => {
    shown.current = { table, flags, zoom: props.zoom, onZoom: props.onZoom };
    latest.current = data;
  }, [table, flags, data, props.zoom, props.onZoom]);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const shape = {
      labels: labels.split("\n"), axis, logarithmic, smoothed, banded, sync, height, words, onHover,
      width: element.clientWidth,
      marks: () => shown.current.table.marks,
      flags: () => shown.current.flags,
      onRange: (chart: uPlot) => shown.current.onZoom?.(zoomOf(chart)),
    };
    const { zoom } = shown.current;
    const made = new uPlot(optionsOf(shape, lookOf(element)), latest.current, element);
    if (zoom) made.setScale("x", { min: zoom.start, max: zoom.end });
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [labels, axis, logarithmic, smoothed, banded, sync, height, words, onHover, theme]);
  useEffect(() => {
    if (plot.current !== undefined) update(plot.current, data);
  }, [data, flags]);
  return place;
}

/** The columns in the order of the chart's series: lines, smoothed lines, edges of bands. */
function dataOf(table: Table, smoothing: number): uPlot.AlignedData {
  const weigh = (column: number) => (row: number) => table.held[column]?.get(table.x[row] ?? NaN)?.count ?? 1;
  const smoothed = smoothing > 0 ? table.columns.map((column, index) => smooth(column, smoothing, weigh(index))) : [];
  const edges = table.bands?.flatMap(({ low, high }) => [low, high]) ?? [];
  return [table.x, ...table.columns, ...smoothed, ...edges];
}

/** The part of its data that a chart shows, or null for all of it and for a chart that was just made. */
function zoomOf(plot: uPlot): Range | null {
  const x = plot.data[0];
  const { min, max } = plot.scales.x ?? {};
  const [first, last] = [x[0], x.at(-1)];
  if (typeof min !== "number" || typeof max !== "number" || first === undefined || last === undefined) return null;
  return x.length > 1 && (min > first || max < last) ? { start: min, end: max } : null;
}

/** New points keep a zoom that the reader has made. */
function update(plot: uPlot, data: uPlot.AlignedData): void {
  const zoom = zoomOf(plot);
  plot.batch(() => {
    plot.setData(data, zoom === null);
    // Also where nothing moves: the values that are in sight may have other bounds now.
    if (zoom !== null) plot.setScale("x", { min: zoom.start, max: zoom.end });
  });
}
