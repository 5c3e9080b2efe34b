import { expect, test } from "vitest";

import { mayDrain, mayResume } from "./drains";

const node = { drain_message: null, maintenance: null } as const;
const offered = (one: Parameters<typeof mayDrain>[0]) => [mayDrain(one) && "drain", mayResume(one) && "resume"].filter(Boolean);

test("a node that takes jobs is drained, one that takes none is resumed", () => {
  expect(offered({ ...node, state: "online" })).toEqual(["drain"]);
  expect(offered({ ...node, state: "draining" })).toEqual(["resume"]);
});

test("a node that is not heard of is resumed where it is known to be drained, else either may be meant", () => {
  expect(offered({ ...node, state: "unreachable", drain_message: "new fan" })).toEqual(["resume"]);
  expect(offered({ ...node, state: "unreachable", maintenance: "res-1" })).toEqual(["resume"]);
  expect(offered({ ...node, state: "unreachable" })).toEqual(["drain", "resume"]);
});
