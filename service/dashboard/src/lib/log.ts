/** Lines kept in memory; older ones are read again when asked for. */
export const MAX_LINES = 100_000;

/** One answer of the service: bytes `offset` to `next` of a log, as text. */
export interface Chunk {
  offset: number;
  next: number;
  text: string;
}

/** A window on a log: its lines, and the bytes it spans. */
export interface LogWindow {
  /** Byte at which the window begins, or null while it is empty. */
  start: number | null;
  end: number;
  /** The last line may still be growing; the first may lack its beginning if `start` is not 0. */
  lines: string[];
  /** Lines that were cut off at the beginning, less those that were added there: what a reader's place shifts by. */
  base: number;
  /** Where chunks began: the line, and its byte. The window can only be cut there. */
  seams: { line: number; offset: number }[];
}

export const EMPTY_LOG: LogWindow = { start: null, end: 0, lines: [""], base: 0, seams: [] };

/** Adds what came after; what is known already is skipped. */
export function append(log: LogWindow, chunk: Chunk, limit = MAX_LINES): LogWindow {
  if (log.start !== null && chunk.next <= log.end) return log;
  const [first = "", ...rest] = chunk.text.split("\n");
  const last = log.lines.length - 1;
  const lines = [...log.lines.slice(0, last), (log.lines[last] ?? "") + first, ...rest];
  const seams = [...log.seams, { line: last, offset: chunk.offset }];
  return trim({ start: log.start ?? chunk.offset, end: chunk.next, lines, base: log.base, seams }, limit);
}

/** Adds what came before, which must end where the window begins. */
export function prepend(log: LogWindow, chunk: Chunk): LogWindow {
  if (log.start !== null && chunk.next !== log.start) return log;
  const before = chunk.text.split("\n");
  const joint = before.length - 1;
  const lines = [...before.slice(0, joint), (before[joint] ?? "") + (log.lines[0] ?? ""), ...log.lines.slice(1)];
  const moved = log.seams.map((seam) => ({ ...seam, line: seam.line + joint }));
  return {
    start: chunk.offset,
    end: log.start === null ? chunk.next : log.end,
    lines,
    base: log.base - joint,
    seams: [{ line: 0, offset: chunk.offset }, ...moved],
  };
}

function trim(log: LogWindow, limit: number): LogWindow {
  const surplus = log.lines.length - limit;
  if (surplus <= 0) return log;
  const cut = log.seams.findLast((seam) => seam.line <= surplus);
  if (cut === undefined || cut.line === 0) return log;
  const seams = log.seams
    .filter((seam) => seam.line >= cut.line)
    .map((seam) => ({ line: seam.line - cut.line, offset: seam.offset }));
  return { ...log, start: cut.offset, lines: log.lines.slice(cut.line), base: log.base + cut.line, seams };
}

const NEWLINE = 10;

/** Raw bytes that begin at `offset`, from their first whole line on, so that no character is torn. */
export function wholeLines(raw: Uint8Array, offset: number): Chunk {
  const skipped = offset === 0 ? 0 : raw.indexOf(NEWLINE) + 1;
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(raw.subarray(skipped));
  return { offset: offset + skipped, next: offset + raw.length, text };
}

/* eslint-disable no-control-regex -- control characters are what these find */
const ESCAPE = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-_]/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
/* eslint-enable no-control-regex */

/** A line as a terminal would leave it: after the last carriage return, without colours and control characters. */
export function clean(line: string): string {
  const body = line.endsWith("\r") ? line.slice(0, -1) : line;
  return body.slice(body.lastIndexOf("\r") + 1).replace(ESCAPE, "").replace(CONTROL, "");
}
