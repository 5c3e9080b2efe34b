import type { Advice } from "./advice";
import type { Lacking, Unusable } from "./lacks";

/** A job that is named. */
interface Named {
  number: number;
  user: string;
  state?: string;
}

/** Jobs that are named, and how many more there are. */
export interface Jobs {
  jobs: readonly Named[];
  more: number;
}

/** Devices of a node. */
interface Place {
  node: string;
  unit: string;
  indexes: string;
  link: string;
}

/** What the service's messages are made of; each kind of reason has some of them. */
export interface Params extends Jobs, Advice, Lacking {
  account: string;
  attempt: number;
  data: Record<string, unknown>;
  by: string;
  due: string;
  end: string;
  first: string;
  free: number | string;
  kept: boolean;
  kind: string;
  late: string;
  least: string;
  limit: number;
  maintenance: boolean;
  name: string;
  names: readonly string[];
  need: string;
  number: number;
  part: number | null;
  pinned: boolean;
  places: readonly Place[];
  preempted: boolean;
  project: string;
  recipes: boolean;
  refusal: string;
  restartable: boolean;
  said: string;
  preemptor_params: unknown;
  saving: Jobs;
  scripts: boolean;
  shared: boolean;
  since: string;
  source: string;
  start: string;
  starting_over: Jobs;
  stop: string;
  stopping: Jobs;
  unknown: string;
  until: string;
  unusable: readonly Unusable[];
  user: string;
  wait: string;
  whose: string;
}
