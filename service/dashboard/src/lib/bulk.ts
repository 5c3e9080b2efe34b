import { t } from "@lingui/core/macro";

/** What became of an action on several jobs. */
export interface Outcome<Done> {
  done: Done[];
  refused: { number: number; why: string }[];
}

/** Requests of one action that are under way at a time. */
const AT_ONCE = 6;

/** Does something to each of several jobs; a refusal of one keeps none of the others from it. */
export async function forEach<Item extends { number: number }, Done>(
  items: readonly Item[], act: (item: Item) => Promise<Done>, explain: (error: unknown) => string,
): Promise<Outcome<Done>> {
  const outcome: Outcome<Done> = { done: [], refused: [] };
  const left = [...items];
  const work = async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) {
      try {
        outcome.done.push(await act(item));
      } catch (error) {
        outcome.refused.push({ number: item.number, why: explain(error) });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return outcome;
}

/** Refusals that are told each with its reason. */
const TOLD = 3;

/** An outcome in words: `18 cancelled, 2 could not: 7: …`. */
export function words(outcome: Outcome<unknown>, verb: string): string {
  const { refused } = outcome;
  const [done, failed, untold] = [outcome.done.length, refused.length, refused.length - TOLD];
  if (failed === 0) return t`${done} ${verb}`;
  const why = refused.slice(0, TOLD).map((one) => `${one.number}: ${one.why}`).join(" ");
  return untold > 0
    ? t`${done} ${verb}, ${failed} could not: ${why} and ${untold} more`
    : t`${done} ${verb}, ${failed} could not: ${why}`;
}
