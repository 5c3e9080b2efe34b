import type { CSSProperties } from "react";

/** Sizes of parallel coordinates, in pixels: above the axes, of them, from their foot to the places of no value. */
export const TOP = 12;
export const TALL = 240;
export const LANE = 24;
export const HEIGHT = TOP + TALL + LANE + 12;
/** From the edges to the first and last axis. */
export const SIDE = 62;
/** How near the pointer must be to a line to speak of it. */
const NEAR = 7;

/** Places of all trials on an axis, null for none. */
export type Column = readonly (number | null)[];

/** How far down a place lies; what has no value lies below the axis. */
export const down = (place: number | null) => (place === null ? TOP + TALL + LANE : TOP + (1 - place) * TALL);

/** Where an axis stands. */
export function across(axis: number, axes: number, width: number): number {
  return axes < 2 ? width / 2 : SIDE + axis * (width - 2 * SIDE) / (axes - 1);
}

/** What a name keeps free beside it, and beyond it to the edge. */
const AIR = 6;

/** Where the name of an axis stands: over its middle, but at either end inside the edge, so that a long one is read. */
export function nameBox(axis: number, axes: number, width: number): CSSProperties {
  const gap = axes < 2 ? width : (width - 2 * SIDE) / (axes - 1);
  const outer = { minWidth: 2 * (SIDE - AIR), maxWidth: SIDE + gap / 2 - 2 * AIR };
  if (axes > 1 && axis === axes - 1) return { right: AIR, ...outer };
  if (axes > 1 && axis === 0) return { left: AIR, ...outer };
  return { left: across(axis, axes, width), transform: "translateX(-50%)", maxWidth: gap - 2 * AIR };
}

/** The line that is nearest to a point; null for none near. */
export function nearest(
  columns: readonly Column[], candidates: readonly number[], width: number, { x, y }: { x: number; y: number },
): number | null {
  const gap = (width - 2 * SIDE) / Math.max(1, columns.length - 1);
  const left = Math.min(columns.length - 2, Math.max(0, Math.floor((x - SIDE) / gap)));
  const [a, b] = [columns[left], columns[left + 1]];
  if (a === undefined || b === undefined) return null;
  const part = Math.min(1, Math.max(0, (x - SIDE - left * gap) / gap));
  let [found, least] = [null as number | null, NEAR];
  for (const at of candidates) {
    const distance = Math.abs(down(a[at] ?? null) * (1 - part) + down(b[at] ?? null) * part - y);
    if (distance <= least) [found, least] = [at, distance];
  }
  return found;
}

/** How a line is drawn. */
export interface Look {
  color: string;
  dashed: boolean;
}

export interface Scene {
  columns: readonly Column[];
  looks: readonly Look[];
  /** Trials from the worst to the best, which is drawn last. */
  order: readonly number[];
  selected: readonly boolean[];
  hovered: number | null;
  /** The colour of lines that do not pass. */
  pale: string;
  width: number;
}

type Pen = Pick<
  CanvasRenderingContext2D,
  "beginPath" | "clearRect" | "globalAlpha" | "lineTo" | "lineWidth" | "moveTo" | "setLineDash" | "stroke" | "strokeStyle"
>;

/** Draws what does not pass in one stroke, then each line that does, then the one under the pointer. */
export function draw(pen: Pen, scene: Scene): void {
  const { columns, looks, order, selected, hovered, width } = scene;
  const line = (at: number) => columns.forEach((column, axis) => {
    const [x, y] = [across(axis, columns.length, width), down(column[at] ?? null)];
    if (axis === 0) pen.moveTo(x, y);
    else pen.lineTo(x, y);
  });
  const stroke = (at: number, size: number, alpha: number) => {
    const look = looks[at];
    pen.strokeStyle = look?.color ?? scene.pale;
    pen.lineWidth = size;
    pen.globalAlpha = alpha;
    pen.setLineDash(look?.dashed ? [5, 4] : []);
    pen.beginPath();
    line(at);
    pen.stroke();
  };
  pen.clearRect(0, 0, width, HEIGHT);
  pen.setLineDash([]);
  pen.strokeStyle = scene.pale;
  pen.lineWidth = 1;
  pen.globalAlpha = 0.5;
  pen.beginPath();
  for (const at of order) if (!selected[at]) line(at);
  pen.stroke();
  const shown = order.filter((at) => selected[at]);
  const alpha = Math.min(0.9, Math.max(0.35, 30 / Math.max(1, shown.length)));
  for (const at of shown) stroke(at, 1.3, alpha);
  if (hovered !== null) stroke(hovered, 3, 1);
}
