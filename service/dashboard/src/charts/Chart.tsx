import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";

import type { Series } from "../api/types";
import { duration, metric, tick } from "../lib/format";
import { type Axis, labels as labelsOf, smooth, type Table, toTable } from "../lib/series";
import { useTheme } from "../lib/theme";
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
}

const NO_FLAGS: readonly Flag[] = [];

/** Lines over steps or time. The pointer shows values, dragging zooms, a double click shows all again. */
export function Chart(props: Props) {
  const { title, series, axis, logarithmic = false, smoothing = 0, words = metric } = props;
  const [theme] = useTheme();
  const [hovered, setHovered] = useState<number | null>(null);
  const table = useMemo(() => toTable(series, axis, logarithmic), [series, axis, logarithmic]);
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
  return axis === "step" ? `step ${x.toLocaleString()}` : duration(x);
}

/** The value under the pointer, or the nearest before it; without a pointer the last one. */
function valueAt(
  table: Table, series: readonly Series[], column: number, index: number | null, words: (value: number) => string,
): string {
  const told = (value: number | string | undefined) => (typeof value === "number" ? words(value) : value ?? "–");
  if (index === null) return told(series[column]?.points.at(-1)?.[2]);
  const mark = table.marks.find((one) => one.series === column && one.x === table.x[index]);
  if (mark !== undefined) return mark.kind;
  return told(table.columns[column]?.slice(0, index + 1).findLast((value) => typeof value === "number") ?? undefined);
}

interface Inputs {
  table: Table;
  labels: string;
  theme: string;
  onHover: (index: number | null) => void;
}

function usePlot(props: Props, { table, labels, theme, onHover }: Inputs) {
  const { axis, logarithmic = false, smoothing = 0, flags = NO_FLAGS, height = 220, words = tick } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const shown = useRef({ table, flags });
  const smoothed = smoothing > 0;
  const data = useMemo((): uPlot.AlignedData => {
    const extra = smoothed ? table.columns.map((column) => smooth(column, smoothing)) : [];
    return [table.x, ...table.columns, ...extra];
  }, [table, smoothed, smoothing]);
  const latest = useRef(data);
  useEffect(() => {
    shown.current = { table, flags };
    latest.current = data;
  }, [table, flags, data]);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const shape = {
      labels: labels.split("\n"), axis, logarithmic, smoothed, height, words, onHover,
      width: element.clientWidth,
      marks: () => shown.current.table.marks,
      flags: () => shown.current.flags,
    };
    const made = new uPlot(optionsOf(shape, lookOf(element)), latest.current, element);
    plot.current = made;
    const resize = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    resize.observe(element);
    return () => {
      resize.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [labels, axis, logarithmic, smoothed, height, words, onHover, theme]);
  useEffect(() => {
    if (plot.current !== undefined) update(plot.current, data);
  }, [data, flags]);
  return place;
}

/** New points keep a zoom that the reader has made. A chart that was just made has no scales yet, and no zoom. */
function update(plot: uPlot, data: uPlot.AlignedData): void {
  const known = plot.data[0];
  const { min, max } = plot.scales.x ?? {};
  const zoomed = known.length > 1 && typeof min === "number" && (min !== known[0] || max !== known.at(-1));
  plot.setData(data, !zoomed);
  if (zoomed) plot.redraw();
}
