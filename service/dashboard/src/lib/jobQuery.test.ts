import { describe, expect, it, test } from "vitest";

import { parseQuery, suggestions, tabOf, withTerm } from "./jobQuery";

describe("a search", () => {
  test.each([
    ["", {}],
    ["lr-sweep", { q: "lr-sweep" }],
    ["user:alice state:failed lr-sweep", { user: "alice", state: ["failed"], q: "lr-sweep" }],
    ["val/accuracy > 0.9", { metric: ["val/accuracy>0.9"] }],
    ["max:val/accuracy > 0.9 min:loss<2 net", { metric: ["max:val/accuracy>0.9", "min:loss<2"], q: "net" }],
    ["val/loss<=1e-3 tag:a tag:b", { metric: ["val/loss<=1e-3"], tag: ["a", "b"] }],
    ["state:waiting state:running", { state: ["queued", "running"] }],
    ["project:\"my project\" \"two words\"", { project: "my project", q: "two words" }],
    ["tag:\"\"", { tag: [""] }],
    ["sweep:12 sweeping", { group: "12", q: "sweeping" }],
    ["resnet 50", { q: "resnet 50" }],
    ["before:#1200 after:7", { before: 1200, after: 7 }],
  ])("%s", (text, filters) => {
    expect(parseQuery(text)).toEqual({ filters, complaints: [] });
  });

  it("says what it does not understand, and keeps the rest", () => {
    const { filters, complaints } = parseQuery("state:broken val/loss > low min:loss < 1e user:ada before:noon");
    expect(filters).toEqual({ state: [], user: "ada" });
    expect(complaints.map((one) => one.split(" ")[0])).toEqual(["val/loss", "min:loss", "broken", "noon"]);
  });

  it("has a tab where its states are one's", () => {
    const texts = ["", "state:waiting", "state:queued", "state:failed state:cancelled"];
    const tabs = texts.map((text) => tabOf(parseQuery(text).filters));
    expect(tabs).toEqual(["all", "waiting", "waiting", null]);
  });
});

it("takes a value in place of the one before", () => {
  expect(withTerm("user:ada net", "user", "bob")).toBe("net user:bob");
  expect(withTerm("state:failed net state:queued", "state", null)).toBe("net");
  expect(withTerm("", "tag", "two words")).toBe("tag:\"two words\"");
});

describe("suggestions", () => {
  const known = { user: ["alice", "bob"], project: ["vision"], tag: ["base"], sweep: ["rates"], metric: ["val/accuracy"] };
  const labels = (text: string) => suggestions(text, text.length, known).map(({ label }) => label);

  it("are keys, their values, and metrics", () => {
    expect(labels("us")).toEqual(["user:"]);
    expect(labels("sweep:r")).toEqual(["rates"]);
    expect(labels("x user:")).toEqual(["alice", "bob"]);
    expect(labels("user:al")).toEqual(["alice"]);
    expect(labels("user:alice")).toEqual([]);
    expect(labels("state:que")).toEqual(["queued"]);
    expect(labels("acc")).toEqual(["val/accuracy >"]);
    expect(labels("")).toEqual([]);
    expect(labels("ma")).toEqual(["max:"]);
    expect([labels("max:"), labels("min:ACC"), labels("max:loss")]).toEqual([["max:val/accuracy >"], ["min:val/accuracy <"], []]);
  });

  it("leave what stands around", () => {
    expect(suggestions("net us rest", 6, known)[0]).toEqual({ text: "net user: rest", caret: 9, label: "user:" });
  });
});

it("complains of a key that has no value yet, and looks for no name like it", () => {
  expect(parseQuery("net user:")).toEqual({ filters: { q: "net" }, complaints: ["user: has no value"] });
  expect(parseQuery("tag:\"\" \"two words\"")).toEqual({ filters: { tag: [""], q: "two words" }, complaints: [] });
});
