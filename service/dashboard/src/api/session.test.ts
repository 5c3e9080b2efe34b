import { QueryClient } from "@tanstack/react-query";
import { afterEach, expect, test, vi } from "vitest";

import { client } from "./client";
import { SETTINGS_KEY, signOut } from "./session";

afterEach(() => {
  vi.restoreAllMocks();
});

/** What the cache holds of the settings and of jobs, after a sign-out that is answered so; null is no answer. */
async function left(status: number | null): Promise<unknown[]> {
  const asked = vi.spyOn(client, "DELETE");
  if (status === null) asked.mockRejectedValue(new TypeError("no connection"));
  else asked.mockResolvedValue({ response: new Response(null, { status }) });
  const cache = new QueryClient();
  cache.setQueryData(SETTINGS_KEY, "signed in");
  cache.setQueryData(["jobs"], "theirs");
  await signOut(cache);
  return [cache.getQueryData(SETTINGS_KEY), cache.getQueryData(["jobs"])];
}

test("a session that has ended leaves nothing of what it showed", async () => {
  expect(await left(204)).toEqual([null, undefined]);
  expect(await left(401)).toEqual([null, undefined]);
});

test("one that the service has not ended is not said to be over", async () => {
  expect(await left(null)).toEqual(["signed in", "theirs"]);
  expect(await left(503)).toEqual(["signed in", "theirs"]);
});
