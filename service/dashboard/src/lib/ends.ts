import type { Extreme } from "../api/types";
import { likelyMode } from "./trials";

/** Smallest and largest values, by job and metric. */
export type Ends = ReadonlyMap<string, ReadonlyMap<string, Extreme>>;

export function endsOf(extremes: readonly Extreme[]): Ends {
  const ends = new Map<string, Map<string, Extreme>>();
  for (const each of extremes) {
    ends.set(each.job, (ends.get(each.job) ?? new Map<string, Extreme>()).set(each.name, each));
  }
  return ends;
}

/** The best value of a run's metric; undefined where none is known. */
export function bestOf(ends: Ends, job: string, name: string): number | undefined {
  return ends.get(job)?.get(name)?.[likelyMode(name)];
}
