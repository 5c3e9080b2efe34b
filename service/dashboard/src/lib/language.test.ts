import { expect, it } from "vitest";

import { languageOf, localeOf } from "./language";

it("takes the first language that the browser prefers and that there is", () => {
  expect(languageOf(null, ["de", "zh-SG", "en"])).toBe("zh-CN");
  expect(languageOf(null, ["en-GB", "zh-CN"])).toBe("en");
  expect(languageOf(null, ["zh", "en"])).toBe("zh-CN");
  expect(languageOf(null, ["fr", "not a tag"])).toBe("en");
  expect(languageOf(null, [])).toBe("en");
});

it("takes no simplified script for the traditional one", () => {
  expect(languageOf(null, ["zh-TW", "en"])).toBe("en");
  expect(languageOf(null, ["zh-TW", "zh", "en"])).toBe("zh-CN");
});

it("prefers what was chosen, as long as there is such a language", () => {
  expect(languageOf("en", ["zh-CN"])).toBe("en");
  expect(languageOf("xx", ["zh-CN"])).toBe("zh-CN");
});

it("writes dates by the browser's variant of the language", () => {
  expect(localeOf("en", ["zh-CN", "en-GB", "en"])).toBe("en-GB");
  expect(localeOf("zh-CN", ["zh-SG"])).toBe("zh-SG");
  expect(localeOf("zh-CN", ["en-GB"])).toBe("zh-CN");
});
