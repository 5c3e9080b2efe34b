/** Times and durations as the page writes them: in the viewer's zone and language, by `Intl`. */

import { formatOf } from "./intl";

const DAY_MS = 86_400_000;
const SECONDS = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" } as const;
const MINUTES = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
const DATE = { day: "numeric", month: "short" } as const;

/** The form of a date, with the year where that is not this one. */
function dateOf(at: Date, now: Date): Intl.DateTimeFormatOptions {
  return at.getFullYear() === now.getFullYear() ? DATE : { ...DATE, year: "numeric" };
}

function written(at: Date, form: Intl.DateTimeFormatOptions): string {
  return formatOf(Intl.DateTimeFormat, form).format(at);
}

/** Date and time to the second; the year is told where it is not this one. */
export function moment(iso: string): string {
  const at = new Date(iso);
  return written(at, { ...dateOf(at, new Date()), ...SECONDS });
}

/** A time of day to the second, with its date where that is not today. */
export function clock(iso: string, now: number): string {
  const at = new Date(iso);
  return written(at, at.toDateString() === new Date(now).toDateString() ? SECONDS : { ...DATE, ...SECONDS });
}

/** The whole of a time, with its zone: what a time tells when it is pointed at. */
export function exactly(iso: string): string {
  return written(new Date(iso), { dateStyle: "full", timeStyle: "full" });
}

/** A time near `now` to the minute: `14:20`, `Tue 14:20`, `24 Nov, 14:20`, `28 Mar 2027, 14:20`. */
export function hour(iso: string, now: number): string {
  const at = new Date(iso);
  const time = written(at, MINUTES);
  if (at.toDateString() === new Date(now).toDateString()) return time;
  const near = Math.abs(at.getTime() - now) < 6 * DAY_MS;
  return near ? `${written(at, { weekday: "short" })} ${time}` : written(at, { ...dateOf(at, new Date(now)), ...MINUTES });
}

/** A day of the viewer's calendar: `Thu, 26 Nov`. */
export function calendarDay(at: number): string {
  return written(new Date(at), { weekday: "short", ...DATE });
}

/** A day that the service counts by, which begins at midnight UTC: `2026-11-24`. */
export function day(date: string): string {
  return written(new Date(`${date}T00:00:00Z`), { weekday: "short", ...DATE, timeZone: "UTC" });
}

type Unit = "day" | "hour" | "minute" | "second";

function amount(value: number, unit: Unit, digits: Intl.NumberFormatOptions = {}): string {
  return formatOf(Intl.NumberFormat, { style: "unit", unit, unitDisplay: "narrow", ...digits }).format(value);
}

const PADDED = { minimumIntegerDigits: 2 } as const;
const TENTH = { minimumFractionDigits: 1, maximumFractionDigits: 1 } as const;

/** Seconds as the two largest units that matter: `3d 4h`, `12m 05s`, `8.2s`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (seconds < 10) return amount(Math.floor(Math.max(0, seconds) * 10) / 10, "second", TENTH);
  if (whole < 60) return amount(whole, "second");
  if (whole < 3600) return `${amount(Math.floor(whole / 60), "minute")} ${amount(whole % 60, "second", PADDED)}`;
  if (whole < 86400) {
    return `${amount(Math.floor(whole / 3600), "hour")} ${amount(Math.floor((whole % 3600) / 60), "minute", PADDED)}`;
  }
  return `${amount(Math.floor(whole / 86400), "day")} ${amount(Math.floor((whole % 86400) / 3600), "hour")}`;
}

const WHOLE = [["day", 86_400], ["hour", 3_600], ["minute", 60]] as const;

/** The largest unit of which so many seconds are a whole number, and its seconds. */
export function wholeUnit(seconds: number): readonly [Unit, number] {
  return WHOLE.find(([, each]) => seconds > 0 && seconds % each === 0) ?? ["second", 1];
}

/** Seconds exactly, in the largest unit of which they are whole: `7d`, `90s`. */
export function exactDuration(seconds: number): string {
  const [unit, size] = wholeUnit(seconds);
  return amount(seconds / size, unit);
}

/** Milliseconds, to a tenth where they are few: `3.4 ms`, `1,730 ms`. */
export function milliseconds(ms: number): string {
  if (ms >= 60_000) return duration(ms / 1000);
  const digits = ms < 100 ? 1 : 0;
  const form = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return `${formatOf(Intl.NumberFormat, form).format(ms)} ms`;
}

/** A span in one coarse unit, for lists: `40s`, `12m`, `3h`, `5d`. */
export function age(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return amount(whole, "second");
  if (whole < 3600) return amount(Math.floor(whole / 60), "minute");
  if (whole < 86400) return amount(Math.floor(whole / 3600), "hour");
  return amount(Math.floor(whole / 86400), "day");
}

/** Seconds between two RFC 3339 times; an absent end means now. */
export function secondsBetween(from: string, to: string | null, now: number): number {
  return ((to === null ? now : Date.parse(to)) - Date.parse(from)) / 1000;
}

/** A time in a message of the service, which writes all of them so: `2026-11-25 22:15 UTC`. */
const IN_MESSAGE = /(\d{4}-\d\d-\d\d) (\d\d:\d\d(?::\d\d)?) UTC/g;

/** A message in pieces: its words, and the times in it in RFC 3339. */
export function pieces(message: string): { text: string; at: string | null }[] {
  const found: { text: string; at: string | null }[] = [];
  let done = 0;
  for (const match of message.matchAll(IN_MESSAGE)) {
    const [text, date = "", time = ""] = match;
    if (Number.isNaN(Date.parse(`${date}T${time}Z`))) continue;
    if (match.index > done) found.push({ text: message.slice(done, match.index), at: null });
    found.push({ text, at: `${date}T${time}Z` });
    done = match.index + text.length;
  }
  if (done < message.length) found.push({ text: message.slice(done), at: null });
  return found;
}
