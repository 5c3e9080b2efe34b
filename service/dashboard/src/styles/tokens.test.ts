import { readFileSync } from "node:fs";

import { expect, it } from "vitest";

const css = readFileSync(new URL("tokens.css", import.meta.url), "utf8");
const GROUNDS = ["ground", "surface", "raised", "sunken", "accent-wash", "danger-wash", "warn-wash"];
const WORDS = [
  "ink", "soft", "faint", "accent", "danger", "warn", "c-queued", "c-assigned", "c-starting", "c-running", "c-stopping",
  "c-unreachable", "c-succeeded", "c-failed", "c-cancelled",
];
const [light = "", dark = ""] = css.split(":root[data-theme=\"dark\"]");

function tokens(theme: string): Map<string, string> {
  return new Map([...theme.matchAll(/--([\w-]+): (#[\da-f]{6});/g)].map(([, name = "", color = ""]) => [name, color]));
}

/** Relative luminance of a colour (WCAG 2.2). */
function luminance(color: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(color.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dim = 0, bright = 0] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (bright + 0.05) / (dim + 0.05);
}

it.each([["light", light], ["dark", dark]])("writes words that can be read on every ground of the %s theme", (_, theme) => {
  const known = tokens(theme);
  const pairs = WORDS.flatMap((word) => GROUNDS.map((ground) => [word, ground] as const));
  const pale = pairs.filter(([word, ground]) => !(contrast(known.get(word) ?? "", known.get(ground) ?? "") >= 4.5));
  expect(pale).toEqual([]);
});
