import type { LogIndex } from "../api/types";

/** Consecutive lines of one rank's log. */
export interface LogBlock {
  rank: number;
  /** Bytes from `offset` to before `end`; a last line may still be growing. */
  offset: number;
  end: number;
  /** Number of its first line in the document, and in its rank's own log. */
  line: number;
  own: number;
  lines: number;
  /** Unix time in seconds, if it is known. */
  time: number | null;
  /** Its text where that is known already, since it has just come. */
  text: string | null;
}

/** Logs as one document: of one rank, or of several in the order of time. */
export interface LogDocument {
  blocks: readonly LogBlock[];
  lines: number;
}

/** Text that has come at the end of a log: its bytes `offset` to `next`. */
export interface Chunk {
  offset: number;
  next: number;
  text: string;
}

export const EMPTY_DOCUMENT: LogDocument = { blocks: [], lines: 0 };
/** A block that grows is followed by another once it has so many characters. */
const FULL = 32 * 1024;
/** Bytes that the service gives at once, and those of each end of a block that has more. */
const MOST_BYTES = 4 * 1024 * 1024;
const END_BYTES = 256 * 1024;
/** Blocks at the end whose text is kept; that of older ones is read again when they come into sight. */
const KEPT = 200;

/** The document of the ranks' logs. Blocks without a time stay behind the one before them. */
export function documentOf(indices: readonly { rank: number; index: LogIndex }[]): LogDocument {
  const placed = indices.flatMap(({ rank, index }) => {
    let order = -Infinity;
    return index.blocks.map((block, at) => {
      const next = index.blocks[at + 1];
      order = Math.max(order, block.time ?? -Infinity);
      const [end, following] = next === undefined ? [index.size, index.lines] : [next.offset, next.line];
      const lines = following - block.line;
      return { order, block: { ...block, rank, end, line: 0, own: block.line, lines, text: null } };
    });
  });
  if (indices.length > 1) placed.sort((one, other) => (one.order === other.order ? 0 : one.order - other.order));
  return numbered(placed.map(({ block }) => block));
}

function numbered(blocks: readonly LogBlock[]): LogDocument {
  let lines = 0;
  const placed = blocks.map((block) => {
    const line = lines;
    lines += block.lines;
    return block.line === line ? block : { ...block, line };
  });
  return { blocks: placed, lines };
}

/** The document with text that has come at the end of a rank's log; what it has already is skipped. */
export function grown(known: LogDocument, rank: number, chunk: Chunk, now: number): LogDocument {
  const { offset, next, text } = chunk;
  if (text === "") return known;
  const at = known.blocks.findLastIndex((block) => block.rank === rank);
  const last = known.blocks[at];
  if (last !== undefined && next <= last.end) return known;
  if (last?.text != null && goesOn(last.text, at === known.blocks.length - 1)) {
    const whole = last.text + text;
    const block = { ...last, end: next, text: whole, lines: countLines(whole) };
    return numbered(known.blocks.with(at, block));
  }
  const own = last === undefined ? 0 : last.own + last.lines;
  const block = { rank, offset, end: next, line: known.lines, own, lines: countLines(text), time: now, text };
  return { blocks: [...withoutOld(known.blocks), block], lines: known.lines + block.lines };
}

/** The blocks without the text of the one that is too old to keep it, unless its rank goes on with it. */
function withoutOld(blocks: readonly LogBlock[]): readonly LogBlock[] {
  const at = blocks.length - KEPT;
  const old = blocks[at];
  if (old?.text == null || blocks.findLastIndex(({ rank }) => rank === old.rank) === at) return blocks;
  return blocks.with(at, { ...old, text: null });
}

/** Whether a block takes what comes next: its last line is not over, or it is the newest and not full. */
function goesOn(text: string, isNewest: boolean): boolean {
  return !text.endsWith("\n") || (isNewest && text.length < FULL);
}

/** Lines of a text; a last one without an end counts. */
export function countLines(text: string): number {
  let count = text === "" || text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

/** The lines of a block's text. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/**
 * The ranges of bytes to read of a block: of one with more than the service gives at once, both ends. Such a block ends
 * with a line as long as that, a progress bar of hours mostly, whose last state is at its end.
 */
export function rangesOf({ offset, end }: Pick<LogBlock, "offset" | "end">): [number, number][] {
  if (end - offset <= MOST_BYTES) return [[offset, end]];
  return [[offset, offset + END_BYTES], [end - END_BYTES, end]];
}

/** The place among the blocks of the one that holds a line. */
export function blockAt({ blocks }: LogDocument, line: number): number {
  let [low, high] = [0, blocks.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((blocks[middle]?.line ?? 0) <= line) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Where a line of a rank's log stands in the document; null if it is not there. */
export function placeOf({ blocks }: LogDocument, rank: number, own: number): number | null {
  const block = blocks.find((one) => one.rank === rank && one.own <= own && own < one.own + one.lines);
  return block === undefined ? null : block.line + own - block.own;
}
