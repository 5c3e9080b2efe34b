import type { DeviceTimeline, Finding, NodeTimeline, Outage, Reservation, Timeline, TimelineJob } from "../api/types";
import { idleWords } from "./idle";
import { stack } from "./stacking";

const HOUR_MS = 3_600_000;
/** Hours to come that are shown, as a share of those that are past. */
const AHEAD = 1 / 3;
/** Spans that are narrower than this share of the picture, and follow each other, are drawn as one. */
const NARROW = 0.0006;

/** A span of time that a picture shows, in milliseconds since the epoch. */
export interface Window {
  from: number;
  now: number;
  to: number;
}

/** The last hours, and a third as much of the next ones. */
export function windowOf(hours: number, now: number): Window {
  return { from: now - hours * HOUR_MS, now, to: now + hours * HOUR_MS * AHEAD };
}

/** Something that is drawn on a lane, in percent of its width. */
export interface Mark {
  left: number;
  width: number;
}

/** A job on a lane: a span that it had or has the device, or is expected to. */
export interface Bar extends Mark {
  key: string;
  job: TimelineJob;
  kind: "held" | "expected";
  /** Ended attempts tell how; null for what is not to be told, or is to come. */
  state: string | null;
  attempt: number | null;
  /** From when to when, RFC 3339; null where that is open. */
  startsAt: string | null;
  endsAt: string | null;
  /** What is to come of it: up to the median of its end, and on to where nine of ten such jobs have ended. */
  ahead: Mark | null;
  spread: Mark | null;
  /** Its row among jobs that share the device. */
  row: number;
  /** Spans that are too narrow to be drawn apart. */
  count: number;
}

/** One device's lane. */
export interface Lane {
  bars: Bar[];
  /** Rows that sharing jobs take. */
  rows: number;
}

function mark(from: number, to: number, { from: first, to: last }: Window): Mark | null {
  const [start, end] = [Math.max(from, first), Math.min(to, last)];
  if (end < start || to < first || from > last) return null;
  const share = 100 / (last - first);
  return { left: (start - first) * share, width: (end - start) * share };
}

/** The place of a moment on the lane, in percent. */
export function place(at: number, { from, to }: Window): number {
  return (at - from) * 100 / (to - from);
}

const msOf = (iso: string | null | undefined) => (iso == null ? null : Date.parse(iso));

/** Where a job that ends at some time to come is drawn after `from`: to the median, and on to the ninth decile. */
function future(job: TimelineJob, from: number, window: Window): Pick<Bar, "ahead" | "spread"> {
  const [p50, p90] = [msOf(job.expected_end_at), msOf(job.expected_end_p90_at)];
  if (p50 === null) return { ahead: null, spread: mark(from, window.to, window) };
  return {
    ahead: mark(from, Math.max(p50, from), window),
    spread: p90 !== null && p90 > p50 ? mark(Math.max(p50, from), p90, window) : null,
  };
}

function held(one: DeviceTimeline["allocations"][number], job: TimelineJob, window: Window): Bar | null {
  const [starts, ends] = [Date.parse(one.starts_at), msOf(one.ends_at)];
  const drawn = mark(starts, ends ?? window.now, window);
  if (drawn === null) return null;
  return {
    ...drawn,
    ...(ends === null ? future(job, window.now, window) : { ahead: null, spread: null }),
    key: `${one.job}-${one.attempt}`,
    job,
    kind: "held",
    state: one.state,
    attempt: one.attempt,
    startsAt: one.starts_at,
    endsAt: one.ends_at,
    row: 0,
    count: 1,
  };
}

function expected(job: TimelineJob, window: Window): Bar | null {
  const starts = msOf(job.expected_start_at);
  if (starts === null) return null;
  const begins = Math.max(starts, window.now);
  const drawn = mark(begins, begins, window);
  if (drawn === null) return null;
  return {
    ...drawn,
    ...future(job, begins, window),
    key: `${job.number}-next`,
    job,
    kind: "expected",
    state: null,
    attempt: null,
    startsAt: job.expected_start_at,
    endsAt: job.expected_end_at,
    row: 0,
    count: 1,
  };
}

/** Whether a bar and the one after it are too narrow to be told apart. */
function isOne(bar: Bar, next: Bar): boolean {
  const narrow = Math.max(bar.width, next.width) < NARROW * 100 || bar.count > 1;
  const near = next.left - bar.left - bar.width < NARROW * 100;
  const past = bar.endsAt !== null && next.endsAt !== null && next.kind === "held";
  return past && narrow && near && next.width < NARROW * 100 && bar.job.user === next.job.user;
}

function joined(bars: readonly Bar[]): Bar[] {
  const found: Bar[] = [];
  for (const bar of bars) {
    const last = found.at(-1);
    if (last !== undefined && isOne(last, bar)) {
      const width = bar.left + bar.width - last.left;
      found[found.length - 1] = { ...last, width, endsAt: bar.endsAt, count: last.count + 1 };
    } else {
      found.push(bar);
    }
  }
  return found;
}

/** Jobs that share the device, one below the other. */
function stacked(bars: readonly Bar[]): Lane {
  const ends = (bar: Bar) => (bar.endsAt === null ? Infinity : bar.left + bar.width);
  const { stacked: found, rows } = stack(bars, (bar) => bar.left, ends);
  return { bars: found.map(({ item, row }) => ({ ...item, row })), rows };
}

/** What is drawn of a device. */
export function laneOf(device: DeviceTimeline, jobs: ReadonlyMap<number, TimelineJob>, window: Window): Lane {
  const past = device.allocations.map((one) => {
    const job = jobs.get(one.job);
    return job === undefined ? null : held(one, job, window);
  });
  const next = device.expected.map((number) => {
    const job = jobs.get(number);
    return job === undefined ? null : expected(job, window);
  });
  const bars = [...past, ...next].filter((bar) => bar !== null);
  const shared = device.allocations.some(({ share }) => share !== null);
  return shared ? stacked(bars) : { bars: joined(bars), rows: 1 };
}

/** A reservation on a lane. */
export interface Reserved extends Mark {
  reservation: Reservation;
}

/** Reservations of a node, or with null those of any node. */
export function reservedOf(timeline: Timeline, node: string | null, window: Window): Reserved[] {
  return timeline.reservations.flatMap((reservation) => {
    const here = node === null ? reservation.nodes.length === 0 : reservation.nodes.includes(node);
    const drawn = here ? mark(Date.parse(reservation.starts_at), Date.parse(reservation.ends_at), window) : null;
    return drawn === null ? [] : [{ ...drawn, reservation }];
  });
}

/** What is past of an outage, on a lane. */
export interface PastOutage extends Mark {
  outage: Outage;
}

/** When a device got no new job up to now, for its own fault or with its node. */
export function outagesOf(device: DeviceTimeline, node: NodeTimeline, window: Window): PastOutage[] {
  return [...node.outages, ...device.outages].flatMap((outage) => {
    const drawn = mark(Date.parse(outage.starts_at), Math.min(msOf(outage.ends_at) ?? window.now, window.now), window);
    return drawn === null ? [] : [{ ...drawn, outage }];
  });
}

/** What keeps jobs from a device from now on. */
export interface Closed {
  kind: "unusable" | "draining" | "unreachable";
  /** Why, as the service says it; of a node, its state. */
  why: string;
  /** What that is made of, where it is known. */
  finding: Finding | null;
  /** Since when, where that is stored. */
  outage: Outage | null;
}

/** What keeps jobs from a device, its own fault before its node's state; null: nothing does. */
export function closedOf(device: DeviceTimeline, node: NodeTimeline): Closed | null {
  const open = (outages: readonly Outage[]) => outages.filter(({ ends_at: ends }) => ends === null);
  if (device.unusable !== null) {
    const { unusable: why, finding = null } = device;
    return { kind: "unusable", why, finding, outage: open(device.outages)[0] ?? null };
  }
  if (node.state === "online") return null;
  const silent = node.state === "unreachable";
  const outage = open(node.outages).find(({ kind }) => (kind === "unreachable") === silent) ?? null;
  return { kind: node.state, why: node.state, finding: null, outage };
}

/** Which kinds of outages are drawn: of what is broken or silent, and of what an administrator drains. */
export function outageKinds(nodes: readonly NodeTimeline[], window: Window): { broken: boolean; drained: boolean } {
  const kinds = new Set(nodes.flatMap((node) => node.devices.flatMap((device) => {
    const now = closedOf(device, node);
    return [...outagesOf(device, node, window).map(({ outage }) => outage.kind), ...now === null ? [] : [now.kind]];
  })));
  const some = (...these: (Outage["kind"] | Closed["kind"])[]) => these.some((kind) => kinds.has(kind));
  return { broken: some("quarantine", "unusable", "unreachable"), drained: some("drain", "maintenance", "draining") };
}

/** Why a device that no job has is idle; null: some job has it, or nothing is known. */
export function idleOf({ idle }: Timeline, node: string, device: number): string | null {
  const found = idle.find((one) => one.node === node && one.devices.includes(device));
  return found === undefined ? null : idleWords(found);
}

/** More colours than these the eye does not tell apart. */
const HUES = 24;

/** The hue of a person, the same on every page and in every browser, in degrees. */
export function hueOf(person: string): number {
  let hash = 0x811c9dc5;
  for (const character of person) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  return (hash % HUES) * (360 / HUES);
}

const STEPS_MS = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * 60_000);

/** Round moments of the viewer's clock within the window, about so many. */
export function ticksOf({ from, to }: Window, about: number): number[] {
  const step = STEPS_MS.find((each) => (to - from) / each <= about) ?? HOUR_MS * 24;
  const offset = new Date(from).getTimezoneOffset() * 60_000;
  const first = Math.ceil((from - offset) / step) * step + offset;
  return Array.from({ length: Math.max(0, Math.ceil((to - first) / step)) }, (_, index) => first + index * step);
}
