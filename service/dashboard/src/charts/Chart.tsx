import { t } from "@lingui/core/macro";
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";

import type { Series } from "../api/types";
import type { Range } from "../lib/buckets";
import { lineColor } from "../lib/colors";
import { list, metric, number, tick } from "../lib/format";
import { type Axis, labels as labelsOf, lastValue, smooth, type Table, toTable } from "../lib/series";
import { useTheme } from "../lib/theme";
import { duration, moment } from "../lib/time";
import { within } from "./keys";
import { useChartKeys } from "./useChartKeys";
import { type ChartActions, ChartMenu, type ExportKind } from "./ChartMenu";
import { colorOf, type Flag, lookOf, optionsOf } from "./options";
import { saveChart } from "./save";

interface Props {
  title: string;
  series: readonly Series[];
  axis: Axis;
  /** Whether the axis of time tells the time of day rather than what has passed since the origin. */
  clock?: boolean;
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
  /** Bounds of the vertical axis, null for those of the data. */
  range?: [number, number] | null;
  /** Labels of lines that are not drawn. */
  hidden?: readonly string[];
  /** Called with the label of a line that is to be drawn or no more. */
  onToggle?: (label: string) => void;
  actions?: ChartActions;
}

const NO_FLAGS: readonly Flag[] = [];
const NONE: readonly string[] = [];

/**
 * Lines over steps or time, with bands where a line is the mean of more points than fit. The pointer shows values,
 * dragging zooms, a double click shows all again; keys do all of it too.
 */
export function Chart(props: Props) {
  const { title, series, axis, clock = false, logarithmic = false, smoothing = 0, hidden = NONE, actions } = props;
  const origin = clock ? 0 : props.origin;
  const [theme] = useTheme();
  const [hovered, setHovered] = useState<number | null>(null);
  const labels = useMemo(() => labelsOf(series), [series]);
  const places = useMemo(
    () => labels.flatMap((label, place) => (hidden.includes(label) ? [] : [place])), [labels, hidden],
  );
  const drawn = useMemo(() => places.flatMap((place) => series[place] ?? []), [places, series]);
  const table = useMemo(() => toTable(drawn, axis, logarithmic, origin), [drawn, axis, logarithmic, origin]);
  const names = places.map((place) => labels[place] ?? "");
  const inputs = { table, labels: names.join("\n"), places: places.join(" "), theme, onHover: setHovered };
  const { place, plot } = usePlot(props, inputs);
  const label = t`Chart of ${{ title: names.join(", ") }}`;
  const { reading, keyed } = useChartKeys(plot, label, (range) => zoomAll(plot.current, props.sync, range));
  const readOut = () => {
    const values = names.map((name, column) => `${name} ${valueAt(table, drawn, column, hovered, props.words ?? metric)}`);
    return `${where(table, hovered, axis, clock)}: ${list(values)}`;
  };
  const save = (kind: ExportKind) => {
    if (plot.current === undefined || place.current === null) return;
    const look = lookOf(place.current);
    const colors = places.map((each) => colorOf(look, each));
    const axisName = clock ? "wall" : axis;
    saveChart(kind, { title, table, labels: names, colors, axis: axisName, logarithmic, plot: plot.current });
  };
  return (
    <figure className="chart" data-smoothed={smoothing > 0 || undefined}>
      <figcaption>
        <span className="chart-title">{title}</span>
        <span className="chart-at">{where(table, hovered, axis, clock)}</span>
        {actions !== undefined && <ChartMenu title={title} actions={actions} onExport={save} />}
      </figcaption>
      <div ref={place} className="chart-canvas" {...keyed} />
      <span className="visually-hidden" role="status">{reading && readOut()}</span>
      <Legend {...props} labels={labels} places={places} drawn={drawn} table={table} hovered={hovered} />
    </figure>
  );
}

interface LegendProps extends Props {
  labels: readonly string[];
  places: readonly number[];
  drawn: readonly Series[];
  table: Table;
  hovered: number | null;
}

/** The lines with their values; each is a switch where lines can be left out. */
function Legend({ labels, places, drawn, table, hovered, words = metric, onToggle }: LegendProps) {
  const [theme] = useTheme();
  const many = labels.length > MANY;
  return (
    <ul className="legend" data-many={many || undefined} tabIndex={many && onToggle === undefined ? 0 : undefined}>
      {labels.map((label, place) => {
        const column = places.indexOf(place);
        const value = column < 0 ? "" : valueAt(table, drawn, column, hovered, words);
        const content = <><i aria-hidden="true" />{label} <b>{value}</b></>;
        return (
          <li key={label} style={{ "--dot": lineColor(place, theme === "dark") } as React.CSSProperties}>
            {onToggle === undefined
              ? content
              : <button type="button" aria-pressed={column >= 0} onClick={() => onToggle(label)}>{content}</button>}
          </li>
        );
      })}
    </ul>
  );
}

/** Lines from which on the legend scrolls. */
const MANY = 12;

function where(table: Table, index: number | null, axis: Axis, clock: boolean): string {
  const x = index === null ? undefined : table.x[index];
  if (x === undefined) return "";
  const [first, last] = table.spans.get(x) ?? [x, x];
  if (clock) return moment(new Date(x * 1000).toISOString());
  if (axis === "time") return duration(x);
  const from = number(first);
  return first === last ? t`step ${{ step: from }}` : t`steps ${from} to ${{ to: number(last) }}`;
}

/** The value under the pointer, or the nearest before it; without a pointer the last one. */
function valueAt(
  table: Table, series: readonly Series[], column: number, index: number | null, words: (value: number) => string,
): string {
  if (index === null) {
    const one = series[column];
    const last = one && lastValue(one);
    return typeof last === "number" ? words(last) : last ?? "–";
  }
  const mark = table.marks.find((one) => one.series === column && one.x === table.x[index]);
  return mark?.kind ?? valueOfRow(table, column, index, words);
}

/** The value in a row, or in the nearest before it; of a bucket its mean and its bounds. */
function valueOfRow(table: Table, column: number, index: number, words: (value: number) => string): string {
  const line = table.columns[column] ?? [];
  const row = line.findLastIndex((value, at) => at <= index && typeof value === "number");
  const value = line[row];
  if (typeof value !== "number") return "–";
  const { min, max } = table.held[column]?.get(table.x[row] ?? NaN) ?? { min: value, max: value };
  const [shown, low, high] = [words(value), words(min), words(max)];
  return min === max ? shown : t`${shown} (${low} to ${high})`;
}

interface Inputs {
  table: Table;
  labels: string;
  /** Places of the lines among all, by which they have their colours. */
  places: string;
  theme: string;
  onHover: (index: number | null) => void;
}

function usePlot(props: Props, { table, labels, places, theme, onHover }: Inputs) {
  const { axis, clock = false, logarithmic = false, smoothing = 0, flags = NO_FLAGS, height = 220 } = props;
  const { words = tick, sync, range } = props;
  const bounds = range?.join(" ") ?? "";
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
      labels: labels === "" ? [] : labels.split("\n"), places: places.split(" ").map(Number), clock,
      range: bounds === "" ? null : bounds.split(" ").map(Number) as [number, number], axis, logarithmic, smoothed, banded, sync, height, words, onHover,
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
  }, [labels, places, bounds, clock, axis, logarithmic, smoothed, banded, sync, height, words, onHover, theme]);
  useEffect(() => {
    if (plot.current !== undefined) update(plot.current, data);
  }, [data, flags]);
  return { place, plot };
}

/** The columns in the order of the chart's series: lines, smoothed lines, edges of bands. */
function dataOf(table: Table, smoothing: number): uPlot.AlignedData {
  const weigh = (column: number) => (row: number) => table.held[column]?.get(table.x[row] ?? NaN)?.count ?? 1;
  const smoothed = smoothing > 0 ? table.columns.map((column, index) => smooth(column, smoothing, weigh(index))) : [];
  const edges = table.bands?.flatMap(({ low, high }) => [low, high]) ?? [];
  return [table.x, ...table.columns, ...smoothed, ...edges];
}

/** Shows a part of the data, null for all, in a chart and those that follow it: uPlot shares but what a mouse does. */
function zoomAll(plot: uPlot | undefined, sync: string, range: Range | null): void {
  const whole = plot && wholeOf(plot);
  if (whole == null) return;
  const { start, end } = range === null ? whole : within(range, whole);
  for (const each of uPlot.sync(sync).plots) each.setScale("x", { min: start, max: end });
}

function wholeOf(plot: uPlot): Range | null {
  const x = plot.data[0];
  const [start, end] = [x[0], x.at(-1)];
  return x.length > 1 && start !== undefined && end !== undefined ? { start, end } : null;
}

/** The part of its data that a chart shows, or null for all of it and for a chart that was just made. */
function zoomOf(plot: uPlot): Range | null {
  const { min, max } = plot.scales.x ?? {};
  const whole = wholeOf(plot);
  if (typeof min !== "number" || typeof max !== "number" || whole === null) return null;
  return min > whole.start || max < whole.end ? { start: min, end: max } : null;
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
