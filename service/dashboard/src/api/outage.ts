import type { Middleware } from "openapi-fetch";
import { useSyncExternalStore } from "react";

/** Answers of a proxy whose service is gone. */
const GATEWAY = new Set([502, 503, 504]);
/** An answer that takes longer counts as none, in milliseconds. */
const TIMEOUT_MS = 15_000;

/** A time in which the service does not answer. */
export interface Outage {
  /** When it last answered, in milliseconds of this machine's clock; null if never. */
  lastAnswerAt: number | null;
}

let outage: Outage | null = null;
let lastAnswerAt: number | null = null;
const listeners = new Set<() => void>();

/** Records whether a request was answered; listeners are called when an outage begins or ends. */
export function record(answered: boolean, now = Date.now()): void {
  if (answered) lastAnswerAt = now;
  if (answered === (outage === null)) return;
  outage = answered ? null : { lastAnswerAt };
  listeners.forEach((listener) => listener());
}

/** The outage that the last request has met, or null. */
export function current(): Outage | null {
  return outage;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useOutage(): Outage | null {
  return useSyncExternalStore(subscribe, current);
}

/** Watches every request to the API, and gives up reads that hang. */
export const outageMiddleware: Middleware = {
  onRequest: ({ request }) => {
    if (request.method !== "GET") return undefined;
    return new Request(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]) });
  },
  onResponse: ({ response }) => record(!GATEWAY.has(response.status)),
  onError: ({ error }) => {
    const leftByThePage = error instanceof DOMException && error.name === "AbortError";
    if (!leftByThePage) record(false);
  },
};
