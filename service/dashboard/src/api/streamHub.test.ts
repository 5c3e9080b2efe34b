import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { concerns, type Post, StreamHub, type ToTab } from "./streamHub";

/** The browser's side of a stream, whose other end is the test. */
class Source extends EventTarget {
  static all: Source[] = [];
  onerror: (() => void) | null = null;
  closed = false;

  constructor() {
    super();
    Source.all.push(this);
  }

  close(): void {
    this.closed = true;
  }

  say(name: string, data: unknown): void {
    this.dispatchEvent(new MessageEvent(name, { data: JSON.stringify(data) }));
  }
}

const puts: { address: string; topics: string[] }[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", Source);
  vi.stubGlobal("fetch", (address: string, { body }: { body: string }) => {
    puts.push({ address, ...JSON.parse(body) as { topics: string[] } });
    return Promise.resolve({ ok: true });
  });
  Source.all.length = puts.length = 0;
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function tab(): Post & { told: ToTab[] } {
  const told: ToTab[] = [];
  return Object.assign((message: ToTab) => void told.push(message), { told });
}

const follow = (...topics: string[]) => ({ kind: "follow", user: "ann", topics, hidden: false }) as const;
const settle = () => vi.advanceTimersByTimeAsync(50);

async function opened(hub: StreamHub, ...tabs: [Post, string[]][]): Promise<Source> {
  tabs.forEach(([post, topics]) => hub.receive(post, follow(...topics)));
  await settle();
  const source = Source.all.at(-1);
  if (source === undefined) throw new Error("no stream was asked for");
  source.say("open", { stream: "s1" });
  await settle();
  return source;
}

test("several tabs share one stream, and each gets what it follows", async () => {
  const [one, other] = [tab(), tab()];
  const source = await opened(new StreamHub(), [one, ["job:a"]], [other, ["jobs", "job:b"]]);
  expect(Source.all.length).toBe(1);
  expect(puts).toEqual([{ address: "/api/v1/live/s1", topics: ["job:a", "jobs", "job:b"] }]);
  expect(one.told).toContainEqual({ kind: "started", topics: ["job:a"] });
  source.say("job", { job: { id: "a" } });
  source.say("jobs", {});
  const names = (post: typeof one) => post.told.flatMap((told) => (told.kind === "event" ? [told.name] : []));
  expect(names(one)).toEqual(["job"]);
  expect(names(other)).toEqual(["job", "jobs"]);
});

test("a stream is taken for gone when it says nothing, and another is begun", async () => {
  const one = tab();
  const source = await opened(new StreamHub(), [one, ["jobs"]]);
  await vi.advanceTimersByTimeAsync(9_000);
  source.say("beat", {});
  await vi.advanceTimersByTimeAsync(9_000);
  expect(source.closed).toBe(false);
  await vi.advanceTimersByTimeAsync(9_000);
  expect(source.closed).toBe(true);
  expect(one.told.at(-1)).toEqual({ kind: "open", open: false });
  Source.all.at(-1)?.say("open", { stream: "s2" });
  await settle();
  expect(puts.at(-1)).toEqual({ address: "/api/v1/live/s2", topics: ["jobs"] });
  expect(one.told).toContainEqual({ kind: "started", topics: ["jobs"] });
});

test("a tab that is gone without a word is forgotten, and the stream ends with the last", async () => {
  const one = tab();
  const source = await opened(new StreamHub(), [one, ["jobs"]]);
  for (let n = 0; n < 30; n += 1) {
    source.say("beat", {});
    await vi.advanceTimersByTimeAsync(9_000);
  }
  expect(source.closed).toBe(true);
});

test("another user gets a stream of their own", async () => {
  const [hub, one] = [new StreamHub(), tab()];
  const source = await opened(hub, [one, ["jobs"]]);
  hub.receive(one, { kind: "follow", user: "ben", topics: ["jobs"], hidden: false });
  await settle();
  expect(source.closed).toBe(true);
  expect(Source.all.length).toBe(2);
});

test("a tab hears of one user's jobs, for which the service is asked for all", async () => {
  const [hub, one, other] = [new StreamHub(), tab(), tab()];
  const source = await opened(hub, [one, ["mine:ann"]], [other, ["jobs"]]);
  expect(puts.at(-1)?.topics).toEqual(["jobs"]);
  expect(one.told).toContainEqual({ kind: "started", topics: ["mine:ann"] });
  source.say("job", { job: { id: "a", user: "ann" } });
  source.say("job", { job: { id: "b", user: "ben" } });
  source.say("jobs", {});
  const events = (post: typeof one) => post.told.filter(({ kind }) => kind === "event").length;
  expect([events(one), events(other)]).toEqual([1, 3]);
});

test("what is followed is told by one request after the other", async () => {
  const answers: (() => void)[] = [];
  vi.stubGlobal("fetch", (address: string, { body }: { body: string }) => {
    puts.push({ address, ...JSON.parse(body) as { topics: string[] } });
    return new Promise((resolve) => answers.push(() => resolve({ ok: true })));
  });
  const [hub, one] = [new StreamHub(), tab()];
  await opened(hub, [one, ["nodes"]]);
  hub.receive(one, follow("nodes", "jobs"));
  await settle();
  hub.receive(one, follow("nodes", "jobs", "queue"));
  await settle();
  expect(puts.map(({ topics }) => topics)).toEqual([["nodes"]]);
  answers[0]?.();
  await settle();
  expect(puts.map(({ topics }) => topics)).toEqual([["nodes"], ["nodes", "jobs", "queue"]]);
  answers[1]?.();
  await settle();
  expect(one.told).toContainEqual({ kind: "started", topics: ["jobs", "queue"] });
  expect(puts).toHaveLength(2);
});

test("one tab speaks for the browser, and only while none is in sight", async () => {
  const [hub, one, other] = [new StreamHub(), tab(), tab()];
  const speaking = () => [one, other].map(({ told }) => (
    told.flatMap((each) => (each.kind === "speaker" ? [each.speaks] : [])).at(-1) ?? false
  ));
  await opened(hub, [one, ["jobs"]], [other, ["jobs"]]);
  expect(speaking()).toEqual([false, false]);
  hub.receive(one, { ...follow("jobs"), hidden: true });
  expect(speaking()).toEqual([false, false]);
  await vi.advanceTimersByTimeAsync(10);
  hub.receive(other, { ...follow("jobs"), hidden: true });
  expect(speaking()).toEqual([false, true]);
  hub.receive(other, { kind: "leave" });
  expect(speaking()).toEqual([true, false]);
  hub.receive(one, follow("jobs"));
  expect(speaking()).toEqual([false, false]);
});

test("events find their topics", () => {
  expect(concerns("metrics", { job: "a" }, new Set(["metrics:a:xyz"]))).toBe(true);
  expect(concerns("metrics", { job: "a" }, new Set(["metrics:ab:xyz", "job:a"]))).toBe(false);
  expect(concerns("log-end", { topic: "log:a:1:0:7" }, new Set(["log:a:1:0:7"]))).toBe(true);
  expect(concerns("job", { job: { id: "a" } }, new Set(["queue", "job:b"]))).toBe(false);
});
