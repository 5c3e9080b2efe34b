import type { Range } from "../lib/buckets";

/** How much more or less of the axis one key shows. */
const ZOOM = 0.7;
/** The part of what is shown by which one key moves. */
const MOVE = 0.1;
/** So many keys lead from one end of what is shown to the other, or one for each point where there are fewer. */
const READINGS = 100;

/** `factor` times as much, around a place from 0 (left) to 1. */
export function zoomed({ start, end }: Range, factor: number, at: number): Range {
  const around = start + (end - start) * at;
  return { start: around + (start - around) * factor, end: around + (end - around) * factor };
}

/** As much, further by a part of what is shown. */
export function moved({ start, end }: Range, part: number): Range {
  const by = (end - start) * part;
  return { start: start + by, end: end + by };
}

/** As much, moved and cut so that it lies inside another part. */
export function within({ start, end }: Range, whole: Range): Range {
  const length = Math.min(end - start, whole.end - whole.start);
  const from = Math.min(Math.max(start, whole.start), whole.end - length);
  return { start: from, end: from + length };
}

/** The part that a key asks for, null for all; undefined if the key means nothing here. */
export function rangeOfKey(key: string, shown: Range): Range | null | undefined {
  if (key === "ArrowLeft") return moved(shown, -MOVE);
  if (key === "ArrowRight") return moved(shown, MOVE);
  if (key === "+" || key === "=") return zoomed(shown, ZOOM, 0.5);
  if (key === "-") return zoomed(shown, 1 / ZOOM, 0.5);
  return key === "0" ? null : undefined;
}

/** The row that is read after another, to the left (-1) or right (1); the first in that direction after none. */
export function nextRow(row: number | null | undefined, by: -1 | 1, [first, last]: readonly [number, number]): number {
  if (row == null || row < first || row > last) return by > 0 ? first : last;
  const stride = Math.max(1, Math.round((last - first) / READINGS));
  return Math.min(last, Math.max(first, row + by * stride));
}
