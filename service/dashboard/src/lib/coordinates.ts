import type { Job } from "../api/types";
import { axisOf, type Key, nameOf, type TrialAxis } from "./axes";
import { bestOf, type Ends } from "./ends";
import { differingFields } from "./runFields";
import { likelyMode } from "./trials";

/** Axes that are there until others are chosen: of fields, and of metrics. */
const [FIELDS, METRICS] = [6, 4];

/** Runs as lines through axes. */
export interface Coordinates {
  /** The runs, with the fields in which they differ as parameters, and their best values beside the final ones. */
  trials: readonly Job[];
  /** All axes that there may be, and those that are shown. */
  keys: readonly Key[];
  axes: readonly TrialAxis[];
}

/** Axes of what runs differ by, and of what metrics came to: `loss` has the final values, `loss best` the best. */
export function coordinatesOf(
  jobs: readonly Job[], metrics: readonly string[], ends: Ends, chosen: readonly Key[] | undefined,
): Coordinates {
  const fields = differingFields(jobs);
  const trials = jobs.map((job, at) => {
    const best = metrics.flatMap((name): [string, number][] => {
      const value = bestOf(ends, job.id, name);
      return value === undefined ? [] : [[`${name} best`, value]];
    });
    return { ...job, parameters: fields[at] ?? {}, latest: { ...job.latest, ...Object.fromEntries(best) } };
  });
  const own = [...new Set(fields.flatMap((one) => Object.keys(one)))].map((name): Key => `parameter:${name}`);
  const came = metrics.flatMap((name): Key[] => [`metric:${name}`, `metric:${name} best`]);
  const keys = [...own, ...came];
  const shown = chosen ?? [...own.slice(0, FIELDS), ...came.slice(0, METRICS)];
  const axes = keys
    .filter((key) => shown.includes(key))
    .map((key) => axisOf(trials, key, { mode: likelyMode(nameOf(key)) }));
  return { trials, keys, axes };
}
