import { i18n } from "@lingui/core";
import { expect, it, onTestFinished } from "vitest";

import openapi from "../../../../openapi.json";
import { CLAUSES, clausesWords } from "./clauses";

const ahead = { message: "batches are taken ahead", code: "ahead", params: {} };
const again = { message: "read again", code: "read-again", params: { count: 12 } };

async function speakChinese() {
  const [before, { messages }] = [i18n.locale, await import("../locales/zh-CN")];
  onTestFinished(() => i18n.activate(before));
  i18n.loadAndActivate({ locale: "zh-CN", messages });
}

it("knows every sentence that a job's own part has", () => {
  expect(Object.keys(CLAUSES)).toEqual(openapi.components.schemas.Clause.properties.code["x-extensible-enum"]);
});

it("says each in Chinese, with what it is made of", async () => {
  await speakChinese();
  const params = Object.fromEntries(["count", "kind", "names", "ranks", "free", "floor", "size", "error", "name", "path"].map((name) => [name, "<it>"]));
  const said = Object.keys(CLAUSES).map((code) => clausesWords([{ message: "English", code, params }], ""));
  expect(said.filter((each) => !/\p{Script=Han}/u.test(each) || each.includes("English"))).toEqual([]);
  expect(clausesWords([ahead, again], "")).toBe("批次在使用它的那一步之前就已取出；数据集是可迭代式的：会重新读取并丢弃前 12 个批次");
});

it("leaves an older note, a program's own words, and what lacks a detail", async () => {
  await speakChinese();
  expect(clausesWords(undefined, "as it was written")).toBe("as it was written");
  expect(clausesWords([], "as it was written")).toBe("as it was written");
  const own = { message: "OSError: no space", code: null, params: {} };
  expect(clausesWords([own, { ...ahead, code: "toString" }, { ...again, params: {} }], ""))
    .toBe("OSError: no space；batches are taken ahead；read again");
  expect(clausesWords([ahead, again], "", "en")).toBe("batches are taken ahead; read again");
});
