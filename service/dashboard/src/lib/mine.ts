import type { Job } from "../api/types";

/** Most jobs of the viewer that the home page shows of those that run, and of those that wait. */
export const MINE = 8;
/** And of those that have ended in the last day. */
const MINE_ENDED = 4;
const DAY_MS = 86_400_000;

type Ended = Pick<Job, "ended_at">;

/** A page of jobs, and the cursor of the next one. */
interface Some<One> {
  items: readonly One[];
  next?: string | null;
}

/** The jobs in the order in which they are shown, and whether others run or wait. */
export function mineOf<One extends Ended>(running: Some<One>, waiting: Some<One>, ended: Some<One>, now: number) {
  const justEnded = ended.items.filter(({ ended_at: at }) => at !== null && now - Date.parse(at) < DAY_MS);
  return {
    jobs: [...running.items, ...waiting.items, ...justEnded.slice(0, MINE_ENDED)],
    more: [running, waiting].some(({ next }) => next != null),
  };
}
