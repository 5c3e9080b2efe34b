import type uPlot from "uplot";

import { toCsv, toSvg } from "../lib/exports";
import type { Axis, Table } from "../lib/series";
import type { ExportKind } from "./ChartMenu";

interface Shown {
  title: string;
  table: Table;
  labels: readonly string[];
  /** Colours of the lines, as the canvas has them. */
  colors: readonly string[];
  axis: Axis | "wall";
  logarithmic: boolean;
  plot: uPlot;
}

/** Saves a chart as it is shown to a file of the browser's. */
export function saveChart(kind: ExportKind, shown: Shown): void {
  const name = `${shown.title.replaceAll(/[^\w.-]+/g, "_")}.${kind}`;
  if (kind === "csv") save(name, new Blob([toCsv(shown.table, shown.labels, shown.axis)], { type: "text/csv" }));
  if (kind === "svg") save(name, new Blob([svgOf(shown)], { type: "image/svg+xml" }));
  if (kind === "png") pngOf(shown).toBlob((blob) => blob !== null && save(name, blob));
}

function save(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function inks(plot: uPlot): { ink: string; grid: string; ground: string } {
  const style = getComputedStyle(plot.root);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return { ink: read("--ink"), grid: read("--line"), ground: read("--surface") };
}

function svgOf({ title, table, labels, colors, logarithmic, plot }: Shown): string {
  const bounds = (key: string): [number, number] => [plot.scales[key]?.min ?? 0, plot.scales[key]?.max ?? 1];
  const frame = {
    title,
    x: table.x,
    scale: { x: bounds("x"), y: bounds("y"), log: logarithmic },
    ticks: { x: ticksOf(plot, 0), y: ticksOf(plot, 1) },
    ...inks(plot),
  };
  const lines = labels.map((label, index) => (
    { label, color: colors[index] ?? frame.ink, column: table.columns[index] ?? [] }
  ));
  return toSvg(frame, lines);
}

/** The ticks of an axis with their words, as they were last drawn. */
function ticksOf(plot: uPlot, index: number): { at: number; label: string }[] {
  const drawn = plot.axes[index] as { _splits?: number[]; _values?: (string | null)[] } | undefined;
  return (drawn?._splits ?? []).flatMap((at, place) => {
    const label = drawn?._values?.[place];
    return label ? [{ at, label }] : [];
  });
}

const [HEAD, LINE, PAD] = [30, 20, 10];

/** The canvas of the chart on its ground, with its title above and its legend below. */
function pngOf({ title, labels, colors, plot }: Shown): HTMLCanvasElement {
  const { ink, ground } = inks(plot);
  const source = plot.ctx.canvas;
  const ratio = source.width / plot.width;
  const canvas = document.createElement("canvas");
  canvas.width = source.width;
  canvas.height = source.height + (HEAD + LINE * labels.length + PAD) * ratio;
  const ctx = canvas.getContext("2d");
  if (ctx === null) return canvas;
  ctx.fillStyle = ground;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(source, 0, HEAD * ratio);
  ctx.scale(ratio, ratio);
  ctx.fillStyle = ink;
  ctx.font = "600 14px sans-serif";
  ctx.fillText(title, PAD, 20);
  ctx.font = "12px sans-serif";
  labels.forEach((label, index) => {
    const y = HEAD + source.height / ratio + LINE * index + 12;
    ctx.fillStyle = colors[index] ?? ink;
    ctx.fillRect(PAD, y - 5, 14, 3);
    ctx.fillStyle = ink;
    ctx.fillText(label, PAD + 22, y);
  });
  return canvas;
}
