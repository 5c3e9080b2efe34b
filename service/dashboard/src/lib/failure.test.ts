import { expect, it } from "vitest";

import { failureSentence, failureWords, learnAdvice } from "./failure";

await learnAdvice();

const FRAMES = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\n";

const KNOWN = { cause: "exit", params: {} };

it("begins with the exception's own line, and keeps how the rank ended and what to do apart", () => {
  const message = "rank 1 exited with code 1: the GPU's memory is full: use a smaller batch";
  const traceback = `${FRAMES}torch.OutOfMemoryError: CUDA out of memory.\nTried to allocate 2 GiB\n`;
  expect(failureWords({ ...KNOWN, message, traceback })).toEqual({
    headline: "torch.OutOfMemoryError: CUDA out of memory.",
    how: "rank 1 exited with code 1",
    advice: "the GPU's memory is full: use a smaller batch",
  });
});

it("takes the exception that was raised last of several", () => {
  const during = "\nDuring handling of the above exception, another exception occurred:\n\n";
  const traceback = `${FRAMES}KeyError: 'x'\n${during}${FRAMES}ValueError: no x`;
  expect(failureWords({ ...KNOWN, message: "rank 0 exited with code 1", traceback })).toEqual(
    { headline: "ValueError: no x", how: "rank 0 exited with code 1", advice: null },
  );
});

it("takes the error of a script that cannot be compiled", () => {
  const traceback = "  File \"train.py\", line 3\n    foo(\n       ^\nSyntaxError: '(' was never closed\n";
  expect(failureWords({ ...KNOWN, message: "exited with code 1", traceback }).headline).toBe("SyntaxError: '(' was never closed");
});

it("takes no long time for lines that a crash has printed", () => {
  const traceback = `Fatal Python error: Segmentation fault\n\n${"  File \"train.py\", line 3 in load\n".repeat(100)}`;
  expect(failureWords({ ...KNOWN, message: "was killed", traceback }).headline).toBe("was killed");
});

it("does not say the exception's line twice", () => {
  const message = "exited with code 1: ValueError: no x";
  expect(failureWords({ ...KNOWN, message, traceback: `${FRAMES}ValueError: no x` }).advice).toBeNull();
});

it("says what the service says of a failure without a traceback", () => {
  const message = "rank 0 was killed by SIGKILL: the node's memory was full";
  expect(failureWords({ ...KNOWN, message, traceback: "last words" })).toEqual({ headline: message, how: null, advice: null });
});

const other = (error: object) => failureWords({ ...KNOWN, message: "as the service says", ...error }, "zh-CN");

it("tells in the chosen language how the process of a failure without a traceback ended", () => {
  const exit = (params: object, more: object = {}) => other({ params: { told: "exit", ...params }, ...more }).headline;
  expect(exit({}, { exit_code: 3 })).toBe("exited with code 3");
  expect(exit({}, { rank: 1, exit_code: 3 })).toBe("rank 1 exited with code 3");
  expect(exit({ node: "a", signal: "SIGKILL" }, { rank: 1 })).toBe("rank 1 on node a was killed by SIGKILL");
  expect(exit({ node: "a", signal: "SIGKILL" })).toBe("the launcher on node a was killed by SIGKILL");
  expect(exit({ signal: "SIGKILL" })).toBe("killed by SIGKILL");
});

it("keeps the service's own words, and begins with the advice where there is nothing else", () => {
  const said = { told: "said", said: "it held 9GiB" };
  expect(other({ cause: "crash", params: said })).toEqual({ headline: "it held 9GiB", how: null, advice: "a crash in native code" });
  expect(other({ cause: "lost", params: { told: "advice" } }).headline).toContain("was lost");
  expect(other({ cause: "crash" }).headline).toBe("as the service says");
});

it("tells a failure in one sentence", () => {
  const sentence = (error: object) => failureSentence({ ...KNOWN, message: "", ...error });
  expect(sentence({ exit_code: 1, params: { told: "exit", own: "ValueError: no x" } })).toBe("exited with code 1: ValueError: no x");
  expect(sentence({ cause: "crash", rank: 0, params: { told: "exit", signal: "SIGSEGV" } }))
    .toBe("rank 0 was killed by SIGSEGV: a crash in native code");
  expect(sentence({ cause: "hung", params: { told: "advice" } })).toContain("made no step any more");
  expect(sentence({ cause: "crash" })).toBeNull();
});

it("leaves advice to the service in English", () => {
  const error = { cause: "crash", params: { told: "advice" }, message: "a crash", traceback: null, rank: 0, exit_code: 1 };
  expect(failureWords(error, "en")).toEqual({ headline: "a crash", how: null, advice: null });
  expect(failureWords(error, "zh-CN").headline).toBe("a crash in native code");
});
