import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { words } from "../locales/zh-CN.problems";
import { messageWords, placeholders, problemIn } from "./problems";

const english = JSON.parse(readFileSync("src/locales/problems.json", "utf8")) as typeof words;
/** What a template of the service takes: `{name}` and `{name!r}`; doubled braces are braces. */
const params = (template: string) => placeholders(template.replaceAll(/\{\{|\}\}/gu, "").replaceAll("!r}", "}"));
/** Whether it has words, and none of them Chinese. */
const isForeign = (said: string) => /\p{L}/u.test(said.replaceAll(/\{\w+\}/gu, "")) && !/\p{Script=Han}/u.test(said);
const asSet = (names: string[]) => [...new Set(names)].sort().join();

describe("the Chinese words of refusals", () => {
  it("has every kind and every message, and nothing else", () => {
    expect(Object.keys(words.titles).sort()).toEqual(Object.keys(english.titles).sort());
    expect(Object.keys(words.messages).sort()).toEqual(Object.keys(english.messages).sort());
  });

  it("is Chinese, and takes what the service puts into a message", () => {
    const all = Object.entries(words.messages);
    expect([...all, ...Object.entries(words.titles)].filter(([, said]) => isForeign(said))).toEqual([]);
    const other = all.filter(([code, said]) => asSet(placeholders(said)) !== asSet(params(english.messages[code] ?? "")));
    expect(other).toEqual([]);
  });
});

it("says uploads, ranges and parameters of sweeps in Chinese, to the last part", () => {
  const said = (code: string, params: Parameters<typeof messageWords>[0]["params"]) => messageWords({ message: "English", code, params }, words);
  const names = { message: "a, b or c", code: "either", params: { others: ["a", "b"], last: "c" } };
  expect(said("similar-key", { names })).toBe("不是此配方的键：是否想写 a, b 或 c？");
  expect(said("found-often", { count: 2, paths: names })).toBe("在配方中出现 2 次：请写明是哪一个，a, b 或 c");
  const why = { message: "is given twice", code: "path-twice", params: {} };
  expect(said("bad-path", { field: "files", path: "a.py", why })).toBe("files：“a.py”给出了两次");
  expect(said("range-outside", { size: 12 })).toBe("文件共 12 字节：请求的范围须在其中。");
});

const some = {
  titles: { forbidden: "不允许" },
  messages: { "at-least": "{given} 太小：最小为 {ge}", "or-never": "{mistake}，或写 never", names: "取 {names}", whole: "太大" },
};
const small = { message: "-1 is too small", code: "at-least", params: { given: "-1", ge: 0 } };

describe("messageWords", () => {
  it("fills in what a message is made of, other messages among it", () => {
    expect(messageWords(small, some)).toBe("-1 太小：最小为 0");
    expect(messageWords({ message: "x, or never", code: "or-never", params: { mistake: small } }, some)).toBe("-1 太小：最小为 0，或写 never");
    expect(messageWords({ message: "a or b", code: "names", params: { names: ["a", "b"] } }, some)).toBe("取 a, b");
  });

  it("leaves what has no words, and what lacks a part", () => {
    expect(messageWords({ ...small, code: "toString" }, some)).toBe("-1 is too small");
    expect(messageWords({ ...small, code: null }, some)).toBe("-1 is too small");
    expect(messageWords({ ...small, params: { given: "-1" } }, some)).toBe("-1 is too small");
  });
});

describe("problemIn", () => {
  const type = "https://torchyard.dev/problems/forbidden";
  const refused = { type, title: "Not allowed", detail: "Too large.", errors: [] };
  const field = { field: "resources.gpus", ...small };
  const detail = (body: unknown) => (problemIn(some, body) as { detail: unknown }).detail;

  it("has the message's own words, or those of its fields", () => {
    expect(detail({ ...refused, code: "whole", errors: [field] })).toBe("太大");
    expect(problemIn(some, { ...refused, errors: [field] })).toMatchObject({
      detail: "resources.gpus: -1 太小：最小为 0", errors: [{ field: "resources.gpus", message: "-1 太小：最小为 0" }],
    });
    const many = Array.from({ length: 5 }, () => field);
    expect(detail({ ...refused, errors: many })).toMatch(/^(?:resources[^;]*; ){3}…$/u);
  });

  it("says at least what kind it is of", () => {
    expect(detail(refused)).toBe("不允许: Too large.");
    expect(detail({ ...refused, type: "about:blank" })).toBe("Too large.");
    expect(detail({ title: "Bad gateway" })).toBe("Bad gateway");
    expect(detail({ detail: 7 })).toBe(7);
    expect(problemIn(some, "<html>")).toBe("<html>");
  });
});
