import { describe, expect, test } from "vitest";

import type { DeviceTimeline, NodeTimeline, Outage, TimelineJob } from "../api/types";
import { closedOf, hueOf, idleOf, laneOf, outageKinds, outagesOf, ticksOf, windowOf } from "./lanes";

const NOW = Date.parse("2026-11-25T12:00:00Z");
const WINDOW = windowOf(3, NOW);
const at = (minutes: number) => new Date(NOW + minutes * 60_000).toISOString();

function job(number: number, more: Partial<TimelineJob> = {}): TimelineJob {
  const start = { expected_start_at: null, expected_start_p90_at: null };
  const end = { expected_end_at: null, expected_end_p90_at: null };
  return { number, name: `job-${number}`, user: "ada", readable: true, ...start, ...end, ...more };
}

type Allocation = DeviceTimeline["allocations"][number];

function held(number: number, from: number, to: number | null, more: Partial<Allocation> = {}): Allocation {
  const ends = to === null ? null : at(to);
  return { job: number, attempt: 1, state: "running", starts_at: at(from), ends_at: ends, share: null, ...more };
}

function gpu(more: Partial<DeviceTimeline> = {}): DeviceTimeline {
  const nothing = { unusable: null, allocations: [], expected: [], outages: [] };
  return { uuid: "GPU-0", index: 0, kind: "gpu", ...nothing, ...more };
}

function lane(jobs: TimelineJob[], allocations: Allocation[], expected: number[] = []) {
  return laneOf(gpu({ allocations, expected }), new Map(jobs.map((one) => [one.number, one])), WINDOW);
}

const rounded = (mark: { left: number; width: number } | null) =>
  mark && [Math.round(mark.left), Math.round(mark.width)];

describe("a lane", () => {
  test("shows the past in proportion and cuts off what lies before", () => {
    const { bars } = lane([job(1), job(2)], [held(1, -240, -120), held(2, -60, 0)]);
    expect(bars.map(rounded)).toEqual([[0, 25], [50, 25]]);
    expect(lane([job(1)], [held(1, -300, -200)]).bars).toEqual([]);
  });

  test("draws what runs ahead to its median end, and its spread to the ninth decile", () => {
    const running = job(1, { expected_end_at: at(24), expected_end_p90_at: at(48) });
    const [bar] = lane([running], [held(1, -60, null)]).bars;
    expect([bar && rounded(bar), rounded(bar?.ahead ?? null), rounded(bar?.spread ?? null)])
      .toEqual([[50, 25], [75, 10], [85, 10]]);
  });

  test("leaves the end open of what might run for ever", () => {
    const [bar] = lane([job(1)], [held(1, -60, null)]).bars;
    expect([bar?.ahead, rounded(bar?.spread ?? null)]).toEqual([null, [75, 25]]);
  });

  test("has the jobs that are expected, but none beyond its end", () => {
    const next = job(2, { expected_start_at: at(24), expected_end_at: at(48), expected_end_p90_at: at(48) });
    const later = job(3, { expected_start_at: at(120) });
    const { bars } = lane([next, later], [], [2, 3]);
    expect(bars.map((bar) => [bar.kind, bar.job.number, rounded(bar.ahead)])).toEqual([["expected", 2, [85, 10]]]);
  });

  test("puts jobs that share a device one below the other", () => {
    const shared = { share: 1 };
    const { bars, rows } = lane([job(1), job(2), job(3)], [
      held(1, -100, null, shared), held(2, -90, -60, shared), held(3, -50, null, shared),
    ]);
    expect(bars.map(({ row }) => row)).toEqual([0, 1, 1]);
    expect(rows).toBe(2);
  });

  test("joins a person's runs that are too short to be told apart", () => {
    const seconds = (from: number) => held(from, -100 + from / 60, -100 + (from + 1) / 60);
    const jobs = [1, 2, 3].map((number) => job(number));
    const { bars } = lane([...jobs, job(9, { user: "ben" })], [seconds(1), seconds(2), seconds(3), seconds(9)]);
    expect(bars.map((bar) => [bar.count, bar.job.user])).toEqual([[3, "ada"], [1, "ben"]]);
  });
});

function out(kind: Outage["kind"], from: number, to: number | null): Outage {
  return { kind, reason: "", starts_at: at(from), ends_at: to === null ? null : at(to) };
}

function box(more: Partial<NodeTimeline> = {}): NodeTimeline {
  return { name: "box", state: "online", maintenance: null, devices: [], outages: [], ...more };
}

describe("an outage", () => {
  const fault = out("quarantine", -60, null);
  const drains = [out("drain", -240, -120), out("drain", -24, -12)];

  test("is drawn over the time in which it held, its node's with its own, up to now", () => {
    const found = outagesOf(gpu({ outages: [fault] }), box({ outages: drains }), WINDOW);
    expect(found.map((one) => [one.outage.kind, ...rounded(one) ?? []])).toEqual([
      ["drain", 0, 25], ["drain", 65, 5], ["quarantine", 50, 25],
    ]);
  });

  test("that was over before, or that a clock ahead of the viewer's has begun, is not drawn behind now", () => {
    expect(outagesOf(gpu(), box({ outages: [out("drain", -300, -200)] }), WINDOW)).toEqual([]);
    const [begun] = outagesOf(gpu(), box({ outages: [out("drain", 1, null)] }), WINDOW);
    expect(begun).toBeUndefined();
  });

  test("tells since when a device is closed, its own fault before its node's state", () => {
    const broken = gpu({ unusable: "in quarantine: Xid 79", outages: [fault] });
    const held = out("drain", -9, null);
    const node = box({ state: "draining", outages: [...drains, held] });
    expect(closedOf(broken, node)).toEqual({ kind: "unusable", why: "in quarantine: Xid 79", finding: null, outage: fault });
    expect(closedOf(gpu(), node)).toEqual({ kind: "draining", why: "draining", finding: null, outage: held });
    expect(closedOf(gpu(), box())).toBeNull();
  });

  test("of a silent node that drains as well is its silence", () => {
    const silent = out("unreachable", -3, null);
    const node = box({ state: "unreachable", outages: [out("drain", -9, null), silent] });
    expect(closedOf(gpu(), node)?.outage).toBe(silent);
    expect(closedOf(gpu(), box({ state: "unreachable" }))?.outage).toBeNull();
  });

  test("has its place in the legend while something of it is seen", () => {
    const kinds = (node: Partial<NodeTimeline>, device: Partial<DeviceTimeline> = {}) => (
      Object.values(outageKinds([box({ ...node, devices: [gpu(device)] })], WINDOW))
    );
    expect(kinds({})).toEqual([false, false]);
    expect(kinds({ outages: [out("drain", -300, -200)] })).toEqual([false, false]);
    expect(kinds({ outages: [out("maintenance", -30, -20)] })).toEqual([false, true]);
    expect(kinds({ state: "draining" }, { outages: [out("quarantine", -30, -20)] })).toEqual([true, true]);
    expect(kinds({}, { unusable: "process 7 holds it" })).toEqual([true, false]);
  });
});

test("an idle device says why", () => {
  const kept = { node: "box", devices: [1, 3], code: "kept", message: "kept for job 57", params: {}, job: 57, until: null };
  const timeline = { since: at(0), nodes: [], jobs: [], reservations: [], idle: [{ ...kept, unstoppable: [] }] };
  expect([idleOf(timeline, "box", 3), idleOf(timeline, "box", 2), idleOf(timeline, "other", 3)])
    .toEqual(["kept for job 57", null, null]);
});

test("a person's hue is the same everywhere", () => {
  expect([hueOf("ada"), hueOf("ada") === hueOf("ben")]).toEqual([hueOf("ada"), false]);
  expect(hueOf("ada") % 15).toBe(0);
});

test("ticks are round moments within the window", () => {
  const ticks = ticksOf(WINDOW, 9);
  expect(ticks.map((tick) => (tick - NOW) / 60_000)).toEqual([-180, -150, -120, -90, -60, -30, 0, 30]);
});
