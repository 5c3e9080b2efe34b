import type { Event } from "../api/types";
import { isFinal, type JobState } from "./states";

/** A span that a job spent in one state, in milliseconds since the epoch. */
export interface Span {
  state: JobState;
  from: number;
  to: number;
  /** Share of the whole, with short spans widened so that they can be seen. */
  share: number;
  open: boolean;
}

const LEAST_SHARE = 0.04;

/** The spans between changes of state, until the end or `now`. */
export function spans(events: readonly Event[], now: number): Span[] {
  const raw: Omit<Span, "share">[] = [];
  for (const event of events) {
    const at = Date.parse(event.at);
    const last = raw.at(-1);
    if (last?.state === event.state) continue;
    if (last?.open === true) Object.assign(last, { to: at, open: false });
    if (!isFinal(event.state)) raw.push({ state: event.state, from: at, to: Math.max(at, now), open: true });
  }
  return withShares(raw);
}

function withShares(raw: Omit<Span, "share">[]): Span[] {
  const total = raw.reduce((sum, span) => sum + span.to - span.from, 0) || 1;
  const widened = raw.map((span) => Math.max(LEAST_SHARE, (span.to - span.from) / total));
  const sum = widened.reduce((all, share) => all + share, 0);
  return raw.map((span, index) => ({ ...span, share: (widened[index] ?? 0) / sum }));
}
