import { expect, it } from "vitest";

import { failureWords } from "./failure";

const FRAMES = "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\n";

it("begins with the exception's own line, and keeps how the rank ended and what to do apart", () => {
  const message = "rank 1 exited with code 1: the GPU's memory is full: use a smaller batch";
  const traceback = `${FRAMES}torch.OutOfMemoryError: CUDA out of memory.\nTried to allocate 2 GiB\n`;
  expect(failureWords({ message, traceback })).toEqual({
    headline: "torch.OutOfMemoryError: CUDA out of memory.",
    how: "rank 1 exited with code 1",
    advice: "the GPU's memory is full: use a smaller batch",
  });
});

it("takes the exception that was raised last of several", () => {
  const during = "\nDuring handling of the above exception, another exception occurred:\n\n";
  const traceback = `${FRAMES}KeyError: 'x'\n${during}${FRAMES}ValueError: no x`;
  expect(failureWords({ message: "rank 0 exited with code 1", traceback })).toEqual(
    { headline: "ValueError: no x", how: "rank 0 exited with code 1", advice: null },
  );
});

it("does not say the exception's line twice", () => {
  const message = "exited with code 1: ValueError: no x";
  expect(failureWords({ message, traceback: `${FRAMES}ValueError: no x` }).advice).toBeNull();
});

it("says what the service says of a failure without a traceback", () => {
  const message = "rank 0 was killed by SIGKILL: the node's memory was full";
  expect(failureWords({ message, traceback: "last words" })).toEqual({ headline: message, how: null, advice: null });
});
