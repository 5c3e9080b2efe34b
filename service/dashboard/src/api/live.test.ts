import { QueryClient, QueryObserver } from "@tanstack/react-query";
import { expect, test, vi } from "vitest";

import { client } from "./client";
import { Events } from "./live";

test("what is told before the first answer has come is asked for again after it", async () => {
  const cache = new QueryClient();
  const answers: ((items: string[]) => void)[] = [];
  const ask = vi.fn(() => new Promise<string[]>((resolve) => answers.push(resolve)));
  const queryKey = ["jobs", "counts"];
  const stop = new QueryObserver(cache, { queryKey, queryFn: ask }).subscribe(() => undefined);
  new Events(cache).receive({ kind: "started", topics: ["jobs"] });
  expect(ask).toHaveBeenCalledTimes(1);
  answers[0]?.([]);
  await vi.waitFor(() => expect(ask).toHaveBeenCalledTimes(2));
  answers[1]?.(["a job that was submitted meanwhile"]);
  await vi.waitFor(() => expect(cache.getQueryData(queryKey)).toHaveLength(1));
  stop();
});

test("the first node that joins is shown at once, and later changes of nodes now and then", async () => {
  const cache = new QueryClient();
  const nodes: string[] = [];
  const ask = vi.fn(() => Promise.resolve({ nodes: [...nodes] }));
  const queryKey = ["timeline", 24];
  const stop = new QueryObserver(cache, { queryKey, queryFn: ask }).subscribe(() => undefined);
  const events = new Events(cache);
  await vi.waitFor(() => expect(cache.getQueryData(queryKey)).toEqual({ nodes: [] }));
  events.receive({ kind: "started", topics: ["jobs", "nodes"] });
  nodes.push("box");
  events.receive({ kind: "event", name: "nodes", data: {} });
  await vi.waitFor(() => expect(cache.getQueryData(queryKey)).toEqual({ nodes: ["box"] }));
  const asked = ask.mock.calls.length;
  events.receive({ kind: "started", topics: ["nodes"] });
  await vi.waitFor(() => expect(ask).toHaveBeenCalledTimes(asked + 1));
  events.receive({ kind: "started", topics: ["nodes"] });
  expect(ask).toHaveBeenCalledTimes(asked + 1);
  stop();
});

test("what several topics of one moment name is asked for once", async () => {
  const cache = new QueryClient();
  const ask = vi.fn(() => Promise.resolve([]));
  const queryKey = ["attention"];
  const stop = new QueryObserver(cache, { queryKey, queryFn: ask }).subscribe(() => undefined);
  await vi.waitFor(() => expect(cache.getQueryData(queryKey)).toEqual([]));
  new Events(cache).receive({ kind: "started", topics: ["jobs", "nodes", "mine:ada"] });
  await vi.waitFor(() => expect(ask).toHaveBeenCalledTimes(2));
  await vi.waitFor(() => expect(cache.isFetching()).toBe(0));
  expect(ask).toHaveBeenCalledTimes(2);
  stop();
});

test("an answer to a probe that comes once the stream is back begins no other", async () => {
  vi.useFakeTimers();
  let answer: (given: never) => void = () => undefined;
  const asked = vi.spyOn(client, "GET").mockImplementation(() => new Promise((resolve) => {
    answer = resolve;
  }));
  const events = new Events(new QueryClient());
  events.receive({ kind: "open", open: true });
  events.receive({ kind: "open", open: false });
  await vi.advanceTimersByTimeAsync(0);
  expect(asked).toHaveBeenCalledTimes(1);
  events.receive({ kind: "open", open: true });
  answer({ response: new Response(null) } as never);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveBeenCalledTimes(1);
  vi.useRealTimers();
  asked.mockRestore();
});

test.each([
  ["a list", ["jobs", "list", { state: ["running"] }], (job: object) => ({ items: [job] }), { items: [] }],
  ["a list of all states", ["jobs", "list", {}], (job: object) => ({ items: [job] }), { items: [{ state: "failed" }] }],
  ["its own page", ["job", "1", "self"], (job: object) => job, { state: "failed" }],
  ["its user's notifications", ["mine", "ada"], (job: object) => [job], [{ state: "failed" }]],
])("an answer to %s that is older than what is told of a job does not bring it back", async (_, queryKey, about, shown) => {
  const cache = new QueryClient();
  const answers: ((data: unknown) => void)[] = [];
  const queryFn = () => new Promise((resolve) => answers.push(resolve));
  const observer = new QueryObserver(cache, { queryKey, queryFn });
  const stop = observer.subscribe(() => undefined);
  const events = new Events(cache);
  const runs = { id: "job-1", user: "ada", state: "running", version: 1, steps: 10 };
  const tell = (job: object) => events.receive({ kind: "event", name: "job", data: { job, changed: false } });
  const answer = async (data: unknown) => {
    // What was told may ask anew.
    await Promise.resolve();
    answers.splice(0).forEach((resolve) => resolve(data));
    await vi.waitFor(() => expect(observer.getCurrentResult().fetchStatus).toBe("idle"));
  };
  // The first answer, and one that replaces what is shown.
  for (const version of [2, 4]) {
    if (version > 2) void observer.refetch();
    tell({ ...runs, state: "failed", version });
    await answer(about({ ...runs, version: version - 1 }));
    expect(observer.getCurrentResult().data).toMatchObject(shown);
  }
  // What an answer tells stays where it is as new, or newer, and nothing is remembered of what was told before it.
  for (const version of [5, 6]) {
    void observer.refetch();
    tell({ ...runs, version: 5 });
    await answer(about({ ...runs, version, steps: 12 }));
    expect(observer.getCurrentResult().data).toMatchObject(about({ ...runs, version, steps: 12 }));
  }
  stop();
  events.stop();
});
