import { MutationObserver, QueryClient, QueryObserver } from "@tanstack/react-query";
import { expect, it } from "vitest";

import { refresh } from "./changes";

function changing(change: () => Promise<string>) {
  const cache = new QueryClient();
  let asked = 0;
  const shown = new QueryObserver(cache, { queryKey: ["jobs", 1], queryFn: () => {
    asked += 1;
    return asked === 1 ? Promise.resolve(asked) : new Promise(() => undefined);
  } });
  const changed = new MutationObserver(cache, { mutationFn: change, onSettled: refresh(cache, ["job", "jobs"]) });
  return { shown, changed, asked: () => asked };
}

async function read(shown: ReturnType<typeof changing>["shown"]) {
  shown.subscribe(() => undefined);
  await expect.poll(() => shown.getCurrentResult().status).toBe("success");
}

it("tells at once that a change has failed, though what it touches does not come", async () => {
  const { shown, changed, asked } = changing(() => Promise.reject(new Error("away")));
  await read(shown);
  await expect(changed.mutate()).rejects.toThrow("away");
  expect(changed.getCurrentResult().status).toBe("error");
  expect(asked()).toBe(2);
});

it("has a change done once what it touches has come", async () => {
  const { shown, changed, asked } = changing(() => Promise.resolve("done"));
  await read(shown);
  void changed.mutate();
  await expect.poll(asked).toBe(2);
  expect(changed.getCurrentResult().status).toBe("pending");
});
