import type { Middleware } from "openapi-fetch";
import { useSyncExternalStore } from "react";

/** Answers of a proxy whose service is gone. */
const GATEWAY = new Set([502, 503, 504]);
/** An answer that takes longer is taken for none, in milliseconds. */
const PATIENCE_MS = 15_000;

/** Whether the service answers, and when it last did (milliseconds of this machine's clock). */
export interface Reach {
  lost: boolean;
  answeredAt: number | null;
}

let reach: Reach = { lost: false, answeredAt: null };
const listeners = new Set<() => void>();

/** Notes whether a request was answered; what shows the outage is told when that changes. */
export function note(answered: boolean, now = Date.now()): void {
  const changes = reach.lost === answered;
  const next = { lost: !answered, answeredAt: answered ? now : reach.answeredAt };
  if (changes) reach = next;
  else Object.assign(reach, next);
  if (changes) listeners.forEach((listener) => listener());
}

/** Whether the service answers, as the last request knows. */
export function current(): Reach {
  return reach;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useReach(): Reach {
  return useSyncExternalStore(subscribe, current);
}

/** Sees every request to the API, and gives up those that hang. */
export const reachMiddleware: Middleware = {
  onRequest: ({ request }) => {
    if (request.method !== "GET") return undefined;
    return new Request(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(PATIENCE_MS)]) });
  },
  onResponse: ({ response }) => note(!GATEWAY.has(response.status)),
  onError: ({ error }) => {
    const left = error instanceof DOMException && error.name === "AbortError";
    if (!left) note(false);
  },
};
