import type { Bar } from "../lib/lanes";
import { duration, hour, secondsBetween } from "../lib/time";

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
