import { expect, it } from "vitest";

import { forEach, words } from "./bulk";

it("goes on after a refusal, and tells of it", async () => {
  const jobs = Array.from({ length: 20 }, (_, index) => ({ number: index + 1 }));
  const act = ({ number }: { number: number }) => (
    number % 10 === 0 ? Promise.reject(new Error("it is over.")) : Promise.resolve(number)
  );
  const outcome = await forEach(jobs, act, (error) => (error as Error).message);
  expect(outcome.done).toHaveLength(18);
  expect(words(outcome, "cancelled")).toBe("18 cancelled, 2 could not: 10: it is over. 20: it is over.");
  expect(words({ done: [1], refused: [] }, "tagged")).toBe("1 tagged");
});
