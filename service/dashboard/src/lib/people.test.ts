import { expect, it } from "vitest";

import type { Quota } from "../api/types";
import { blockedWords, labelOf, ROLES } from "./people";

const standing = (gpus: number, queued: number) => ({ gpus, queued }) as Quota["standing"];

it("says what becomes of running and of waiting jobs before somebody is blocked", () => {
  expect(blockedWords(standing(2, 1), "GPU", "GPUs").join(" ")).toBe(
    "All tokens and sessions end at once. What runs goes on to its end: 2 GPUs held now. " +
    "1 waiting job will not start until the user is let in again. Usage, files and finished jobs stay.",
  );
  expect(blockedWords(standing(1, 0), "slot", "slots")).toContain("What runs goes on to its end: 1 slot held now.");
  expect(blockedWords(standing(0, 0), "GPU", "GPUs")).toContain("There are no jobs that run or wait.");
  expect(blockedWords(undefined, "GPU", "GPUs").join(" ")).not.toContain("jobs that run or wait");
});

it("names what it does not know as it is", () => {
  expect(labelOf(ROLES, "viewer")).toBe("viewer");
  expect(labelOf<string>(ROLES, "owner")).toBe("owner");
});
