import { afterEach, expect, it, vi } from "vitest";

import type { Reservation } from "../api/types";
import { daysOf, isSkipped, localInput, rowsOf, shownOf, workingHours } from "./calendar";

const now = new Date(2026, 10, 26, 14, 30).getTime(); // a Thursday
const days = daysOf(now, 0, 2);
const at = (day: number, hour: number) => new Date(2026, 10, day, hour).toISOString();

function reserved(name: string, from: string, to: string, more: Partial<Reservation> = {}): Reservation {
  return {
    id: name, name, state: "planned", users: [], projects: [], maintenance: true, nodes: ["box"], gpus: null,
    starts_at: from, ends_at: to, created_by: "root", created_at: from, ...more,
  };
}

it("begins on Monday and moves by weeks", () => {
  expect(days).toHaveLength(14);
  expect(days[0]?.from).toBe(new Date(2026, 10, 23).getTime());
  expect(daysOf(now, -1, 2)[0]?.from).toBe(new Date(2026, 10, 16).getTime());
  expect(days.every(({ to }, index) => days[index + 1] === undefined || days[index + 1]?.from === to)).toBe(true);
});

it("draws a bar as wide as its share of the days, within them", () => {
  const [row] = rowsOf([reserved("a", at(23, 12), at(24, 12)), reserved("b", at(1, 0), at(23, 0))], ["box"], days);
  expect(row).toMatchObject({ node: "box", lines: 1 });
  expect(row?.bars).toHaveLength(1);
  expect(row?.bars[0]?.left).toBeCloseTo(50 / 14);
  expect(row?.bars[0]?.width).toBeCloseTo(100 / 14);
  expect(rowsOf([reserved("c", at(1, 0), at(30, 0))], ["box"], days)[0]?.bars[0]).toMatchObject({ left: 0, width: 50 });
});

it("puts what holds at once below each other, and what is on any node into a row of its own", () => {
  const some = [1, 2].map((gpus) => reserved(`${gpus}`, at(25, 8), at(25, 18), { nodes: [], gpus }));
  const rows = rowsOf([...some, reserved("off", at(25, 8), at(25, 9), { state: "cancelled" })], ["box", "two"], days);
  expect(rows.map(({ node, lines, bars }) => [node, lines, bars.map(({ line }) => line)]))
    .toEqual([["box", 1, []], ["two", 1, []], ["", 2, [0, 1]]]);
  expect(shownOf(some, daysOf(now, 3, 2))).toEqual([]);
});

it("writes a moment as a field for local times has it", () => {
  expect(localInput(new Date(2026, 0, 5, 9, 7).getTime())).toBe("2026-01-05T09:07");
});

it("begins a new reservation with hours that are to come", () => {
  const midnight = (date: number) => new Date(2026, 10, date).getTime();
  const day = (date: number) => ({ from: midnight(date), to: midnight(date + 1) });
  expect(workingHours(day(27), now)).toEqual({ from: "2026-11-27T09:00", to: "2026-11-27T17:00" });
  expect(workingHours(day(26), now)).toEqual({ from: "", to: "2026-11-26T17:00" });
  expect(workingHours(day(26), now + 3 * 3_600_000)).toEqual({ from: "", to: "2026-11-27T00:00" });
});

it("goes by the clock on the day when summer time begins, and knows the hour that it passes over", () => {
  vi.stubEnv("TZ", "Europe/Berlin");
  const [from, to] = [new Date(2026, 2, 29).getTime(), new Date(2026, 2, 30).getTime()];
  expect(to - from).toBe(23 * 3_600_000);
  expect(workingHours({ from, to }, 0)).toEqual({ from: "2026-03-29T09:00", to: "2026-03-29T17:00" });
  expect(["2026-03-29T01:59", "2026-03-29T02:30", "2026-03-29T03:00", "", "2026-10-25T02:30"].map(isSkipped))
    .toEqual([false, true, false, false, false]);
});

afterEach(() => vi.unstubAllEnvs());
