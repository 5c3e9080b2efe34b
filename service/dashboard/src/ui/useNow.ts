import { useCallback, useSyncExternalStore } from "react";

import { useOutage } from "../api/outage";

/** One ticker for each period, so that all that grows on a page grows at the same moment. */
interface Ticker {
  now: number;
  readers: Set<() => void>;
  timer: ReturnType<typeof setInterval> | undefined;
}

const tickers = new Map<number, Ticker>();

function tickerOf(everyMs: number): Ticker {
  const ticker = tickers.get(everyMs) ?? { now: Date.now(), readers: new Set(), timer: undefined };
  tickers.set(everyMs, ticker);
  return ticker;
}

function listen(everyMs: number, reader: () => void): () => void {
  const ticker = tickerOf(everyMs);
  if (ticker.readers.size === 0) {
    ticker.now = Date.now();
    ticker.timer = setInterval(() => {
      ticker.now = Date.now();
      ticker.readers.forEach((each) => each());
    }, everyMs);
  }
  ticker.readers.add(reader);
  return () => {
    ticker.readers.delete(reader);
    if (ticker.readers.size === 0) clearInterval(ticker.timer);
  };
}

/**
 * The time in milliseconds, anew every so often, for ages that grow on the page. It stands still while the service does
 * not answer, since nobody knows then what goes on.
 */
export function useNow(everyMs = 1000): number {
  const subscribe = useCallback((reader: () => void) => listen(everyMs, reader), [everyMs]);
  const now = useSyncExternalStore(subscribe, () => tickerOf(everyMs).now);
  const lastAnswerAt = useOutage()?.lastAnswerAt ?? null;
  return lastAnswerAt === null ? now : Math.min(lastAnswerAt, now);
}
