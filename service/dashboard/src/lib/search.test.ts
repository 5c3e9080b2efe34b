import { expect, it } from "vitest";

import { parseSearch } from "./search";

const read = (raw: object) => parseSearch(raw as Parameters<typeof parseSearch>[0]);

it("reads what it knows and leaves the rest out", () => {
  expect(read({ q: 12, by: "user", order: "oldest", columns: "state", other: "x" }))
    .toEqual({ q: "12", by: "user", order: "oldest", columns: "state" });
  expect(read({ order: "-duration" })).toEqual({ order: "-duration" });
  expect(read({ q: "", by: "nonsense", order: "newest" })).toEqual({});
});

it("takes a link's user, project or tag as words of the search", () => {
  expect(read({ q: "net", project: "vision" })).toEqual({ q: "net project:vision" });
});
