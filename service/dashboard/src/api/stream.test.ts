import { afterEach, expect, test, vi } from "vitest";

import { follow, join } from "./stream";

afterEach(() => {
  vi.unstubAllGlobals();
});

test("a hidden tab follows what some part of it needs while hidden, whichever part has gone", async () => {
  const told: string[][] = [];
  const post = ({ topics }: { topics: string[] }) => told.push(topics);
  const port = { addEventListener: () => undefined, start: () => undefined, postMessage: post };
  vi.stubGlobal("SharedWorker", class {
    port = port;
  });
  vi.stubGlobal("document", { hidden: true, addEventListener: () => undefined });
  vi.stubGlobal("addEventListener", () => undefined);
  vi.useFakeTimers();
  join("ada");
  const needed = follow("job:1", true);
  follow("job:1")();
  await Promise.resolve();
  expect(told.at(-1)).toEqual(["job:1"]);
  const other = follow("job:1");
  needed();
  await Promise.resolve();
  expect(told.at(-1)).toEqual([]);
  other();
  vi.useRealTimers();
});
