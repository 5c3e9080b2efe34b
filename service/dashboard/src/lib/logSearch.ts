import type { LogMatch, LogSearch } from "../api/types";

/** Lines that a search shows; all are counted. */
export const MOST_MATCHES = 1_000;
/** Pause before what has come meanwhile is searched, in milliseconds. */
export const PAUSE_MS = 2_000;

export interface Found {
  /** The rank and the line that was found there. */
  matches: { rank: number; match: LogMatch }[];
  count: number;
  /** Whether all has been read. */
  done: boolean;
  error: unknown;
}

export const NOTHING_FOUND: Found = { matches: [], count: 0, done: true, error: null };
/** A search that has not found anything yet. */
export const READING: Found = { ...NOTHING_FOUND, done: false };

/** Where a search goes on: a byte, and the number of the line that begins there. */
export interface Place {
  offset: number;
  line: number;
}

/** What is known once a rank's log was searched from a line on; what was found in that line before is replaced. */
export function foundMore(known: Found, rank: number, from: Place, answer: LogSearch): Found {
  const kept = known.matches.filter((one) => one.rank !== rank || one.match.line < from.line);
  return {
    ...known,
    error: null,
    count: known.count - (known.matches.length - kept.length) + answer.count,
    matches: [...kept, ...answer.matches.map((match) => ({ rank, match }))].slice(0, MOST_MATCHES),
  };
}

/** The place among so many matches after one, -1 for none yet, forwards or back; the last is followed by the first. */
export function nextMatch(at: number, by: 1 | -1, count: number): number {
  return at < 0 && by < 0 ? count - 1 : (at + by + count) % count;
}

type Read = (rank: number, from: Place) => Promise<LogSearch>;

/** Searches logs to their end, part by part, and on from their last line each time they have grown. */
export class LogSearcher {
  #places: Map<number, Place>;
  #read: Read;
  #tell: (found: Found) => void;
  #signal: AbortSignal;
  #found = READING;
  #asked = false;
  #running = false;

  constructor(ranks: readonly number[], read: Read, tell: (found: Found) => void, signal: AbortSignal) {
    this.#places = new Map(ranks.map((rank) => [rank, { offset: 0, line: 0 }]));
    this.#read = read;
    this.#tell = tell;
    this.#signal = signal;
  }

  /** Searches what is not searched yet; called while that goes on, once more after a pause. */
  async search(): Promise<void> {
    this.#asked = true;
    if (this.#running) return;
    this.#running = true;
    while (this.#asked && !this.#signal.aborted) {
      this.#asked = false;
      await this.#searchAll().catch((error: unknown) => this.#set({ ...this.#found, done: true, error }));
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    this.#running = false;
  }

  async #searchAll(): Promise<void> {
    this.#set(this.#found);
    for (const rank of this.#places.keys()) await this.#searchRank(rank);
    this.#set({ ...this.#found, done: true });
  }

  async #searchRank(rank: number): Promise<void> {
    let next: number | null = 0;
    while (next !== null) {
      const from = this.#places.get(rank) ?? { offset: 0, line: 0 };
      const answer = await this.#read(rank, from);
      next = answer.next;
      this.#places.set(rank, { offset: next ?? answer.line_offset, line: answer.line });
      this.#set(foundMore(this.#found, rank, from, answer));
    }
  }

  #set(found: Found): void {
    if (this.#signal.aborted) return;
    this.#found = found;
    this.#tell(found);
  }
}
