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
