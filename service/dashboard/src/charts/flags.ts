/** A vertical line of a chart, and the room that its label takes right of it. */
export interface Line {
  x: number;
  width: number;
}

/** Whether each label ends before the next line, from left to right; the last always has room. */
export function haveRoom(lines: readonly Line[]): boolean[] {
  return lines.map(({ x, width }, index) => x + width <= (lines[index + 1]?.x ?? Infinity));
}
