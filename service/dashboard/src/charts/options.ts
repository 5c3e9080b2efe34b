import uPlot from "uplot";

import { lineColor } from "../lib/colors";
import { tick } from "../lib/format";
import type { Axis, Mark } from "../lib/series";
import { duration } from "../lib/time";
import { shownBounds } from "./bounds";
import { haveRoom } from "./flags";

/** A moment worth a vertical line: a later attempt took over there. */
export interface Flag {
  x: number;
  label: string;
}

export interface Look {
  /** Those that the tokens hold. */
  colors: string[];
  dark: boolean;
  ink: string;
  grid: string;
  flag: string;
  font: string;
}

/** The chart's colours of the theme in use, read from the page's style. */
export function lookOf(element: Element): Look {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    colors: [1, 2, 3, 4, 5, 6, 7, 8].map((index) => read(`--series-${index}`)),
    dark: style.colorScheme === "dark",
    ink: read("--faint"),
    grid: read("--line"),
    flag: read("--c-stopping"),
    font: `11px ${read("--sans")}`,
  };
}

/** The colour of a line by its place among all of its chart. */
export function colorOf(look: Look, place: number): string {
  return look.colors[place] ?? lineColor(place, look.dark);
}

export interface Shape {
  labels: string[];
  /** Places of the lines among all of the chart, those included that are not drawn. */
  places: number[];
  /** Whether the horizontal axis tells the time of day. */
  clock: boolean;
  /** Bounds of the vertical axis, null for those of the data. */
  range: [number, number] | null;
  axis: Axis;
  logarithmic: boolean;
  smoothed: boolean;
  /** Whether each line has a band. */
  banded: boolean;
  /** Charts of the same name share pointer and zoom. */
  sync: string;
  width: number;
  height: number;
  /** Words of a value on the vertical axis. */
  words: (value: number) => string;
  onHover: (index: number | null) => void;
  /** Called when the horizontal axis shows another part. */
  onRange: (chart: uPlot) => void;
  /** Read at each drawing, so that they may change without a new chart. */
  marks: () => readonly Mark[];
  flags: () => readonly Flag[];
}

// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- a const enum, which is gone at build time
const LOGARITHMIC = 3 as uPlot.Scale.Distr;

export function optionsOf(shape: Shape, look: Look): uPlot.Options {
  return {
    width: shape.width,
    height: shape.height,
    legend: { show: false },
    padding: [10, 8, 0, 0],
    cursor: { sync: { key: shape.sync }, points: { size: 7 }, drag: { x: true, y: false, setScale: true }, y: false },
    scales: {
      x: { time: shape.clock },
      y: {
        ...(shape.logarithmic && { distr: LOGARITHMIC }),
        ...rangeOf(shape),
      },
    },
    axes: [
      axisOf(look, { size: shape.clock ? 44 : 30, space: 70, ...(shape.clock ? {} : shape.axis === "time" ? TIME : STEPS) }),
      axisOf(look, { size: 66, space: 34, values: (_, splits) => splits.map((split) => words(split, shape)) }),
    ],
    series: [{}, ...lines(shape, look), ...(shape.banded ? edges(shape, look) : [])],
    bands: shape.banded ? bands(shape, look) : [],
    hooks: {
      setCursor: [(chart) => shape.onHover(chart.cursor.idx ?? null)],
      setScale: [(chart, key) => key === "x" && shape.onRange(chart)],
      drawClear: [(chart) => drawFlags(chart, shape.flags(), look)],
      draw: [(chart) => drawMarks(chart, shape, look)],
    },
  };
}

const STEPS: Partial<uPlot.Axis> = { values: (_, splits) => splits.map(steps) };
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME: Partial<uPlot.Axis> = {
  values: (_, splits) => splits.map((split) => (split === 0 ? "0" : duration(split))),
  incrs: [
    0.1, 0.5, 1, 2, 5, 10, 20, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE,
    HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 12 * HOUR, DAY, 2 * DAY, 5 * DAY, 10 * DAY, 30 * DAY,
  ],
};

function axisOf(look: Look, more: Partial<uPlot.Axis>): uPlot.Axis {
  return {
    stroke: look.ink,
    font: look.font,
    grid: { stroke: look.grid, width: 1 },
    ticks: { stroke: look.grid, width: 1, size: 5 },
    ...more,
  };
}

function words(split: number | null, shape: Shape): string {
  return split === null ? "" : shape.words(split);
}

function steps(value: number): string {
  if (!Number.isInteger(value)) return "";
  return Math.abs(value) >= 10_000 ? `${tick(value / 1000)}k` : tick(value);
}

/** How the vertical axis ends; nothing where uPlot decides. */
function rangeOf({ range, logarithmic }: Shape): Pick<uPlot.Scale, "range"> {
  if (range !== null && shownBounds(range, logarithmic, null) !== null) {
    return { range: (_, least) => shownBounds(range, logarithmic, least) ?? range };
  }
  return logarithmic ? {} : { range: roomy };
}

/** A little room above and below, also around a flat line. */
function roomy(_: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  const room = (max - min || Math.abs(max) || 1) * 0.08;
  return [min >= 0 && min < room ? 0 : min - room, max + room];
}

/** Raw lines, and above them the smoothed ones; raw lines fade then. */
function lines(shape: Shape, look: Look): uPlot.Series[] {
  const color = (index: number) => colorOf(look, shape.places[index] ?? index);
  const raw = shape.labels.map((label, index): uPlot.Series => ({
    label,
    stroke: color(index),
    width: shape.smoothed ? 1 : 1.6,
    alpha: shape.smoothed ? 0.28 : 1,
    points: { size: 5, fill: color(index) },
  }));
  if (!shape.smoothed) return raw;
  const smooth = shape.labels.map((_, index): uPlot.Series => ({
    stroke: color(index),
    width: 2,
    points: { show: false },
  }));
  return [...raw, ...smooth];
}

/** The lower and the upper edges of the bands, which follow the lines: thin, so that a peak one pixel wide is seen. */
function edges({ labels, places }: Shape, look: Look): uPlot.Series[] {
  return labels.flatMap((_, index) => {
    const edge: uPlot.Series = { width: 1, stroke: faded(look, places[index] ?? index, 45), points: { show: false } };
    return [edge, { ...edge }];
  });
}

function faded(look: Look, index: number, percent: number): string {
  return `color-mix(in srgb, ${colorOf(look, index)} ${percent}%, transparent)`;
}

function bands(shape: Shape, look: Look): uPlot.Band[] {
  const { labels, places, smoothed } = shape;
  const before = labels.length * (smoothed ? 2 : 1);
  return labels.map((_, index) => {
    const low = 1 + before + 2 * index;
    return { series: [low + 1, low], fill: faded(look, places[index] ?? index, smoothed ? 12 : 24) };
  });
}

function inside(chart: uPlot, x: number): number | null {
  const { min, max } = chart.scales.x ?? {};
  if (min == null || max == null || x < min || x > max) return null;
  return chart.valToPos(x, "x", true);
}

function drawFlags(chart: uPlot, flags: readonly Flag[], look: Look): void {
  const { ctx } = chart;
  const { top, height } = chart.bbox;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.strokeStyle = look.flag;
  ctx.fillStyle = look.flag;
  ctx.lineWidth = ratio;
  ctx.font = look.font.replace("11px", `${11 * ratio}px`);
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.setLineDash([4 * ratio, 4 * ratio]);
  const lines = flags.flatMap(({ x: at, label }) => {
    const x = inside(chart, at);
    return x === null ? [] : [{ x, label, width: ctx.measureText(label).width + 8 * ratio }];
  }).sort((one, other) => one.x - other.x);
  const labelled = haveRoom(lines);
  lines.forEach(({ x, label }, index) => {
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    if (labelled[index]) ctx.fillText(label, x + 4 * ratio, top + 2 * ratio);
  });
  ctx.restore();
}

const SIGNS = { nan: "×", inf: "▲", "-inf": "▼" } as const;

/** Signs where no line can go: infinite values at the edge they fled over, what is no number at the bottom. */
function drawMarks(chart: uPlot, { marks, places }: Shape, look: Look): void {
  const { ctx } = chart;
  const { top, height } = chart.bbox;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.font = `bold ${11 * ratio}px sans-serif`;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  for (const mark of marks()) {
    const x = inside(chart, mark.x);
    if (x === null) continue;
    ctx.fillStyle = colorOf(look, places[mark.series] ?? mark.series);
    ctx.fillText(SIGNS[mark.kind], x, mark.kind === "inf" ? top + 7 * ratio : top + height - 7 * ratio);
  }
  ctx.restore();
}
