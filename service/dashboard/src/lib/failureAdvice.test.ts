import { expect, it } from "vitest";

import openapi from "../../../../openapi.json";
import { ADVICE, adviceOn } from "./failureAdvice";

const advice = (cause: string, params = {}) => adviceOn({ cause, params });

it("knows every cause that the service has", () => {
  expect(openapi.components.schemas.JobError.properties.cause["x-extensible-enum"].filter((one) => !(one in ADVICE))).toEqual([]);
});

it("advises on a failure whose cause is known", () => {
  expect(advice("crash")).toBe("a crash in native code");
  expect(advice("time-limit")).toContain("`time_limit`");
  expect(advice("device-assert")).toContain("`env: {CUDA_LAUNCH_BLOCKING: '1'}`");
});

it("names the file or the module", () => {
  expect(advice("missing-file", { subject: "/data/x.bin" })).toContain("the file /data/x.bin is not on the node");
  expect(advice("missing-module")).toContain("the module that it names is not");
  expect(advice("no-torch", { subject: "/opt/python" })).toContain("`/opt/python -m pip install torch`");
  expect(advice("no-torch")).toContain("the job's Python has no torch");
  expect(advice("start-limit", { limit: "1h" })).toContain("`start_limit` of 1h");
  expect(advice("dependency", { job: 7 })).toContain("job 7, which it waited for");
  expect(advice("address-in-use", { taken: true })).not.toBe(advice("address-in-use"));
});

it("leaves to the service what is not known", () => {
  expect(advice("exit")).toBeNull();
  expect(advice("toString")).toBeNull();
});
