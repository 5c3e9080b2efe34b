import { t } from "@lingui/core/macro";

import type { Outage } from "../api/types";
import { NODE_STATES } from "../box/words";
import { findingWords, outageWords } from "../lib/findings";
import { shownName } from "../lib/jobWords";
import type { Bar, Closed } from "../lib/lanes";
import { STATE_LABELS } from "../lib/states";
import { duration, hour, pieces, secondsBetween } from "../lib/time";
import { Coded } from "../ui/Coded";

/** What is told of what is pointed at, and where the pointer is. */
export interface Pointed {
  words: readonly string[];
  x: number;
  y: number;
}

/** Instead of a time that is not known. */
const UNKNOWN = "?";

/** What the states of attempts are called. */
const ATTEMPT_STATES: Readonly<Record<string, string>> = {
  ...STATE_LABELS, preempted: t`preempted`, voided: t`voided`, lost: t({ message: "lost", context: "attempt" }),
};

/** What a bar tells: its job, whose it is, from when to when, and how it ended. */
export function told({ job, kind, state, attempt, startsAt, endsAt, count }: Bar, now: number): string[] {
  const when = (iso: string | null | undefined) => (iso == null ? UNKNOWN : hour(iso, now));
  const [start, end, late] = [when(startsAt), when(job.expected_end_at), when(job.expected_end_p90_at)];
  if (count > 1) return [t`${count} short runs`, job.user, `${start}–${when(endsAt)}`];
  const who = [`${job.number} ${shownName(job.name, job.readable)}`, job.user];
  const ends = job.expected_end_at == null ? [] : [kind === "expected" ? t`ends about ${end}` : t`ends about ${end}, by ${late} in nine cases of ten`];
  if (kind === "expected") return [...who, toldStart(start, when(job.expected_start_p90_at)), ...ends];
  const ran = startsAt === null ? "" : ` · ${duration(secondsBetween(startsAt, endsAt, now))}`;
  return [
    ...who,
    `${start}–${endsAt === null ? t`now` : when(endsAt)}${ran}`,
    ...state === null ? [] : [toldState(state, attempt)],
    ...endsAt === null ? ends : [],
  ];
}

function toldStart(start: string, late: string): string {
  return late === UNKNOWN ? t`starts about ${start}` : t`starts about ${start}, by ${late} in nine cases of ten`;
}

function toldState(state: string, attempt: number | null): string {
  const word = ATTEMPT_STATES[state] ?? state;
  return attempt !== null && attempt > 1 ? t`${word} (attempt ${attempt})` : word;
}

const OUTAGES: Record<Outage["kind"], string> = {
  quarantine: t`in quarantine`,
  drain: t`draining`,
  maintenance: t`maintenance`,
  unreachable: t`unreachable`,
};

/** What an outage tells: which it is, from when to when, and why. */
export function toldOutage({ kind, reason, finding, starts_at: starts, ends_at: ends }: Outage, now: number): string[] {
  const span = `${hour(starts, now)}–${ends === null ? t`now` : hour(ends, now)}`;
  const lasted = duration(secondsBetween(starts, ends, now));
  return [OUTAGES[kind], `${span} · ${lasted}`, ...reason === "" ? [] : [inOwnTime(outageWords(finding, reason), now)]];
}

/** What keeps jobs away from now on tells: since when too, where that is known. */
export function toldClosed(closed: Closed, now: number): string[] {
  return closed.outage === null ? [whyOf(closed, now)] : toldOutage(closed.outage, now);
}

/** Why a device gets no jobs, in words. */
export function whyOf({ kind, why, finding }: Closed, now: number): string {
  return kind === "unusable" ? inOwnTime(findingWords(finding, why), now) : NODE_STATES[kind];
}

/** Why a device is idle, as the tip of what is free of it. */
export function toldIdle(why: string, now: number): string[] {
  const words = inOwnTime(why, now);
  return [t`free`, t`idle: ${words}`];
}

/** A sentence of the service, with its times in the viewer's zone. */
function inOwnTime(text: string, now: number): string {
  return pieces(text).map((piece) => (piece.at === null ? piece.text : hour(piece.at, now))).join("");
}

/** A card beside the pointer, or below what has the focus. */
export function LaneTip({ pointed }: { pointed: Pointed | null }) {
  if (pointed === null) return null;
  const [title = "", ...lines] = pointed.words;
  const right = pointed.x > innerWidth / 2;
  const style = { top: pointed.y + 16, ...(right ? { right: innerWidth - pointed.x } : { left: pointed.x }) };
  return (
    <div className="lane-tip" style={style} aria-hidden="true">
      <b>{title}</b>
      {lines.map((line) => <span key={line}><Coded text={line} /></span>)}
    </div>
  );
}
