import { i18n } from "@lingui/core";
import { afterEach, expect, it } from "vitest";

import { translated } from "./people";
import type { User } from "./types";

afterEach(() => i18n.activate("en"));

const WARNING = "the worker on node own may not become ghost, the UNIX account of ada: …";
const ADA = {
  name: "ada",
  warning: WARNING,
  warning_sentence: {
    message: WARNING,
    code: "account-foreign",
    params: { where: { message: "node own", code: "the-node", params: { node: "own" } }, account: "ghost", user: "ada" },
  },
} as unknown as User;

it("warns of a user in the language that was chosen", async () => {
  expect((await translated(ADA)).warning).toBe(WARNING);
  i18n.activate("zh-CN");
  const { warning } = await translated(ADA);
  expect(warning).toContain("节点 own");
  expect(warning).toContain("ghost");
  expect((await translated({ ...ADA, warning_sentence: null })).warning).toBe(WARNING);
});
