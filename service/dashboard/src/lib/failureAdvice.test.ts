import { expect, it } from "vitest";

import { failureAdvice } from "./failureAdvice";

it("advises on a failure whose cause is known", () => {
  expect(failureAdvice("crash", "zh-CN")).toBe("a crash in native code");
  expect(failureAdvice("time-limit", "zh-CN")).toContain("`time_limit`");
});

it("leaves to the service what names a file, what is not known, and English", () => {
  expect(failureAdvice("missing-file", "zh-CN")).toBeNull();
  expect(failureAdvice("toString", "zh-CN")).toBeNull();
  expect(failureAdvice("crash", "en")).toBeNull();
});
