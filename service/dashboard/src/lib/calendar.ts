import type { Reservation } from "../api/types";
import { stack } from "./stacking";

/** A day of the viewer's calendar, from midnight to midnight, in milliseconds. */
export interface Day {
  from: number;
  to: number;
}

/** The days of so many weeks; the first begins with the Monday of the week that `now` is in, `shift` weeks later. */
export function daysOf(now: number, shift: number, weeks: number): Day[] {
  const today = new Date(now);
  const monday = today.getDate() - (today.getDay() + 6) % 7 + 7 * shift;
  const midnight = (day: number) => new Date(today.getFullYear(), today.getMonth(), monday + day).getTime();
  return Array.from({ length: 7 * weeks }, (_, day) => ({ from: midnight(day), to: midnight(day + 1) }));
}

/** The part of the days that lies before a moment, in percent; a day is as wide as any, however long it is. */
function before(at: number, days: readonly Day[]): number {
  const done = days.reduce((sum, { from, to }) => sum + Math.min(1, Math.max(0, (at - from) / (to - from))), 0);
  return done * 100 / days.length;
}

/** A reservation as a bar of a row of days. */
export interface ReservationBar {
  reservation: Reservation;
  left: number;
  width: number;
  /** Its line among those that hold at the same time. */
  line: number;
}

/** One node's row, or with an empty name the row of what is reserved on any node. */
export interface CalendarRow {
  node: string;
  bars: ReservationBar[];
  lines: number;
}

/** Reservations of which some lies in the days, by their start; those that were cancelled are left out. */
export function shownOf(all: readonly Reservation[], days: readonly Day[]): Reservation[] {
  const [from, to] = [days[0]?.from ?? 0, days.at(-1)?.to ?? 0];
  return all.filter(({ state, starts_at: starts, ends_at: ends }) => (
    state !== "cancelled" && Date.parse(starts) < to && Date.parse(ends) > from
  ));
}

/** A row for each node, and one for what is on any where there is such a thing. */
export function rowsOf(all: readonly Reservation[], nodes: readonly string[], days: readonly Day[]): CalendarRow[] {
  const shown = shownOf(all, days);
  const any = shown.filter((one) => one.nodes.length === 0);
  const rows = nodes.map((node) => rowOf(node, shown.filter((one) => one.nodes.includes(node)), days));
  return any.length === 0 ? rows : [...rows, rowOf("", any, days)];
}

function rowOf(node: string, shown: readonly Reservation[], days: readonly Day[]): CalendarRow {
  const starts = (one: Reservation) => Date.parse(one.starts_at);
  const ends = (one: Reservation) => Date.parse(one.ends_at);
  const { stacked, rows } = stack(shown, starts, ends);
  const bars = stacked.map(({ item, row }) => {
    const left = before(starts(item), days);
    return { reservation: item, left, width: before(ends(item), days) - left, line: row };
  });
  return { node, bars, lines: rows };
}

/** A moment as a field for local times has it: `2026-11-26T14:30`. */
export function localInput(at: number): string {
  const here = new Date(at);
  const two = (value: number) => String(value).padStart(2, "0");
  const date = [String(here.getFullYear()).padStart(4, "0"), two(here.getMonth() + 1), two(here.getDate())].join("-");
  return `${date}T${two(here.getHours())}:${two(here.getMinutes())}`;
}

/** Nine to five of a day, as two such fields; if that is past, from now, an empty field, or to the day's end. */
export function workingHours({ from, to }: Day, now: number): { from: string; to: string } {
  const at = (hour: number) => new Date(from).setHours(hour);
  return { from: at(9) < now ? "" : localInput(at(9)), to: localInput(at(17) > now ? at(17) : to) };
}

/** Whether such a field has a time that the clocks pass over, in the night when summer time begins. */
export function isSkipped(text: string): boolean {
  return text !== "" && localInput(Date.parse(text)) !== text;
}
