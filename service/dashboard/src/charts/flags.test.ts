import { expect, it } from "vitest";

import { haveRoom } from "./flags";

it("labels the lines whose words do not reach the next one, and the last", () => {
  const lines = [{ x: 10, width: 30 }, { x: 20, width: 30 }, { x: 60, width: 30 }, { x: 60, width: 30 }];
  expect(haveRoom(lines)).toEqual([false, true, false, true]);
  expect(haveRoom([])).toEqual([]);
});
