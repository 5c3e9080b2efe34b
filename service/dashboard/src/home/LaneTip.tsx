import type { Outage } from "../api/types";
import type { Bar, Closed } from "../lib/lanes";
import { duration, hour, pieces, secondsBetween } from "../lib/time";

/** What is told of what is pointed at, and where the pointer is. */
export interface Pointed {
  words: readonly string[];
  x: number;
  y: number;
}

/** What a bar tells: its job, whose it is, from when to when, and how it ended. */
export function told({ job, kind, state, attempt, startsAt, endsAt, count }: Bar, now: number): string[] {
  const when = (iso: string | null | undefined) => (iso == null ? "?" : hour(iso, now));
  if (count > 1) return [`${count} short runs`, job.user, `${when(startsAt)}–${when(endsAt)}`];
  const who = [`${job.number} ${job.name}`, job.user];
  if (kind === "expected") {
    const late = job.expected_start_p90_at;
    return [
      ...who,
      `starts about ${when(startsAt)}${late == null ? "" : `, by ${when(late)} in nine cases of ten`}`,
      ...job.expected_end_at == null ? [] : [`ends about ${when(job.expected_end_at)}`],
    ];
  }
  const ran = startsAt === null ? "" : ` · ${duration(secondsBetween(startsAt, endsAt, now))}`;
  const ends = job.expected_end_at;
  return [
    ...who,
    `${when(startsAt)}–${endsAt === null ? "now" : when(endsAt)}${ran}`,
    ...state === null ? [] : [attempt !== null && attempt > 1 ? `${state} (attempt ${attempt})` : state],
    ...endsAt !== null || ends == null ? [] : [`ends about ${when(ends)}, by ${when(job.expected_end_p90_at)} in nine cases of ten`],
  ];
}

const OUTAGES: Record<Outage["kind"], string> = {
  quarantine: "in quarantine",
  drain: "draining",
  maintenance: "maintenance",
  unreachable: "unreachable",
};

/** What an outage tells: which it is, from when to when, and why. */
export function toldOutage({ kind, reason, starts_at: starts, ends_at: ends }: Outage, now: number): string[] {
  const span = `${hour(starts, now)}–${ends === null ? "now" : hour(ends, now)}`;
  const lasted = duration(secondsBetween(starts, ends, now));
  return [OUTAGES[kind], `${span} · ${lasted}`, ...reason === "" ? [] : [inOwnTime(reason, now)]];
}

/** What keeps jobs away from now on tells: since when too, where that is known. */
export function toldClosed({ why, outage }: Closed, now: number): string[] {
  return outage === null ? [inOwnTime(why, now)] : toldOutage(outage, now);
}

/** Why a device is idle, as the tip of what is free of it. */
export function toldIdle(why: string, now: number): string[] {
  return ["free", `idle: ${inOwnTime(why, now)}`];
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
      {lines.map((line) => <span key={line}>{line}</span>)}
    </div>
  );
}
