import uPlot from "uplot";

import { lookOf } from "../charts/options";
import type { Range } from "../lib/buckets";
import { resolveColor } from "../lib/colors";
import { tick } from "../lib/format";
import type { Grid, Run } from "../lib/runs";
import { smooth } from "../lib/series";
import { duration } from "../lib/time";
import type { View } from "./view";

/** Bands are drawn for so many runs at most: of more they hide one another. */
const BANDED = 8;
/** How near to a line the pointer must be to speak of it, in pixels. */
const NEAR = 24;

export interface Shape {
  runs: readonly Run[];
  byStep: boolean;
  logarithmic: boolean;
  width: number;
  height: number;
  view: View;
  /** How values are written on the axis. */
  words: (value: number) => string;
  /** Tells of the row under the pointer, and of the run that is nearest; null for none. */
  onHover: (row: number | null, run: number | null) => void;
}

export function makePlot(element: HTMLElement, shape: Shape, data: uPlot.AlignedData): uPlot {
  const look = lookOf(element);
  const banded = shape.runs.length <= BANDED;
  const colors = shape.runs.map((run) => resolveColor(element, run.color));
  const axis = { stroke: look.ink, font: look.font, grid: { stroke: look.grid, width: 1 } };
  const edge = (color: string): uPlot.Series => (
    { stroke: `color-mix(in srgb, ${color} 35%, transparent)`, width: 1, points: { show: false } }
  );
  const values = (_: uPlot, splits: (number | null)[]) => splits.map((split) => (split === null ? "" : shape.words(split)));
  const places = (_: uPlot, splits: number[]) => splits.map((split) => (shape.byStep ? steps(split) : duration(split)));
  const plot: uPlot = new uPlot({
    width: shape.width,
    height: shape.height,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    focus: { alpha: 0.18 },
    cursor: {
      sync: { key: "compare", setSeries: true, scales: ["x", null] },
      focus: { prox: NEAR },
      drag: { x: true, y: false, setScale: false },
      points: { show: false },
      y: false,
      bind: {
        dblclick: () => () => {
          shape.view.show(null);
          return null;
        },
      },
    },
    scales: {
      x: { time: false, range: (_, min, max) => {
        const shown = shape.view.range;
        return shown === null ? [min, max] : [shown.start, shown.end];
      } },
      // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- a const enum, gone at build time
      y: shape.logarithmic ? { distr: 3 } : {},
    },
    axes: [
      { ...axis, size: 28, space: 80, values: places },
      { ...axis, size: 62, space: 34, values },
    ],
    series: [
      {},
      ...shape.runs.map(({ job }, index): uPlot.Series => ({
        label: job.name,
        stroke: colors[index] ?? look.ink,
        width: shape.runs.length > BANDED ? 1 : 1.6,
        points: { show: false },
      })),
      ...(banded ? colors.flatMap((color) => [edge(color), edge(color)]) : []),
    ],
    bands: banded ? colors.map((color, index) => bandOf(color, 1 + shape.runs.length + 2 * index)) : [],
    hooks: {
      setCursor: [(chart) => shape.onHover(chart.cursor.idx ?? null, focused(chart, shape.runs.length))],
      setSeries: [(chart) => shape.onHover(chart.cursor.idx ?? null, focused(chart, shape.runs.length))],
      setSelect: [(chart) => {
        const { left, width } = chart.select;
        if (width < 3) return;
        const range = { start: chart.posToVal(left, "x"), end: chart.posToVal(left + width, "x") };
        chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        shape.view.show(range);
      }],
    },
  }, data, element);
  pan(plot, shape.view);
  return plot;
}

/** The band between two edges, the lower one first. */
function bandOf(color: string, low: number): uPlot.Band {
  return { series: [low + 1, low], fill: `color-mix(in srgb, ${color} 16%, transparent)` };
}

/** The run of the line in focus; edges of bands belong to theirs. */
function focused(chart: uPlot, runs: number): number | null {
  const lines = chart.series.slice(1).map((one) => (one as { _focus?: boolean | null })._focus);
  const at = lines.indexOf(true);
  if (at < 0 || !lines.includes(false)) return runs === 1 ? 0 : null;
  return at < runs ? at : Math.floor((at - runs) / 2);
}

/** Dragging with Shift or the middle button moves what is shown; the wheel with Ctrl makes it larger or smaller. */
function pan(plot: uPlot, view: View): void {
  let from: { x: number; range: Range } | null = null;
  const { over } = plot;
  const shown = (): Range => ({ start: plot.scales.x?.min ?? 0, end: plot.scales.x?.max ?? 1 });
  over.addEventListener("pointerdown", (event) => {
    if (!event.shiftKey && event.button !== 1) return;
    event.preventDefault();
    from = { x: event.clientX, range: shown() };
    over.setPointerCapture(event.pointerId);
  });
  // Before uPlot, which would begin to select.
  over.addEventListener("mousedown", (event) => {
    if (event.shiftKey || event.button === 1) event.stopImmediatePropagation();
  }, { capture: true });
  over.addEventListener("pointermove", (event) => {
    if (from === null) return;
    const { start, end } = from.range;
    const moved = (from.x - event.clientX) / over.clientWidth * (end - start);
    view.show({ start: start + moved, end: end + moved }, plot);
  });
  // Also where the browser takes the pointer away, which brings no `pointerup`.
  over.addEventListener("lostpointercapture", () => {
    from = null;
  });
  over.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    view.zoom(shown(), Math.exp(event.deltaY / 300), event.offsetX / over.clientWidth, plot);
  }, { passive: false });
}

function steps(value: number): string {
  return Math.abs(value) >= 10_000 ? `${tick(value / 1000)}k` : tick(value);
}

/** The columns of the chart: a line for each run that is shown, and the edges of its band where there are few. */
export function dataOf(grid: Grid, hidden: ReadonlySet<number>, smoothing: number): uPlot.AlignedData {
  const nothing = grid.x.map(() => undefined);
  const shown = <Column>(columns: readonly Column[]) => (
    columns.map((one, index) => (hidden.has(index) ? nothing : one))
  );
  const mean = smoothing > 0 ? grid.mean.map((column) => smooth(column, smoothing)) : grid.mean;
  const edges = grid.mean.length > BANDED
    ? []
    : shown(grid.low).flatMap((low, index) => [low, hidden.has(index) ? nothing : grid.high[index] ?? nothing]);
  return [grid.x, ...shown(mean), ...edges] as uPlot.AlignedData;
}
