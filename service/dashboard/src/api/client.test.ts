import { expect, test } from "vitest";

import { ApiError, atFields, problem } from "./client";

const body = {
  title: "Invalid request",
  detail: "The request is wrong.",
  errors: [{ field: "time_limit", message: "write 4h" }, { field: "tags.3", message: "is too long" }],
};

test("complaints stand at their fields, those about a part of one too", () => {
  expect(atFields(problem(422, body), ["time_limit", "tags", "name"])).toEqual({
    fields: { time_limit: "write 4h", tags: "is too long" }, rest: null,
  });
});

test("an error about no field of the form is told whole", () => {
  const error = problem(422, body);
  expect(atFields(error, ["name", "tags"])).toEqual({ fields: { tags: "is too long" }, rest: error });
  const changed = new ApiError(412, "The job has changed.");
  expect(atFields(changed, ["name"])).toEqual({ fields: {}, rest: changed });
  expect(atFields(null, ["name"])).toEqual({ fields: {}, rest: null });
});
