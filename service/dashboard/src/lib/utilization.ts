import { t } from "@lingui/core/macro";

import type { DeviceUtilization, Utilization } from "../api/types";
import { place, type Window } from "./lanes";

/** How busy one device was: percent by buckets of time; null is unknown. */
export interface Use {
  /** Beginning of the first bucket and length of each, in milliseconds. */
  since: number;
  bucket: number;
  /** Whether these are the processors and the memory of the whole node. */
  ofNode: boolean;
  utilization: readonly (number | null)[];
  memory: readonly (number | null)[];
}

/** A device by a name of its own. */
export const keyOf = (node: string, uuid: string) => `${node} ${uuid}`;

/** What is known of each device; a device of which nothing is known is left out. */
export function usesOf(found: Utilization | undefined): ReadonlyMap<string, Use> {
  if (found === undefined) return new Map();
  return new Map(found.devices.filter(isKnown).map((one) => [keyOf(one.node, one.uuid), {
    since: Date.parse(found.since),
    bucket: found.bucket_s * 1_000,
    ofNode: one.of_node,
    utilization: one.utilization,
    memory: one.memory,
  }]));
}

function isKnown({ utilization, memory }: DeviceUtilization): boolean {
  return [...utilization, ...memory].some((one) => one !== null);
}

/** Steps of a strip of 100 by 100, one a bucket; where nothing is known there is a gap. */
export interface Steps {
  area: string;
  line: string;
}

/** The steps of percent values over a window of time. */
export function stepsOf(values: readonly (number | null)[], { since, bucket }: Use, window: Window): Steps {
  const x = (index: number) => round(place(Math.min(since + index * bucket, window.now), window));
  const runs = runsOf(values).map(({ first, last }) => ({
    begin: x(first),
    line: values.slice(first, last).map((value, at) => `${round(100 - (value ?? 0))}H${x(first + at + 1)}`).join("V"),
  }));
  return {
    area: runs.map(({ begin, line }) => `M${begin} 100V${line}V100Z`).join(""),
    line: runs.map(({ begin, line }) => `M${begin} ${line}`).join(""),
  };
}

const round = (value: number) => Math.round(value * 100) / 100;

/** Where values follow each other without a gap. */
function runsOf(values: readonly (number | null)[]): { first: number; last: number }[] {
  const runs: { first: number; last: number }[] = [];
  values.forEach((value, at) => {
    const run = runs.at(-1);
    if (value === null) return;
    if (run?.last === at) run.last = at + 1;
    else runs.push({ first: at, last: at + 1 });
  });
  return runs;
}

/** What is known of a moment, in words; null where nothing is. */
export function toldAt(use: Use, at: number): string[] | null {
  const index = Math.floor((at - use.since) / use.bucket);
  const [busy, held] = [use.utilization[index] ?? null, use.memory[index] ?? null];
  if (busy === null && held === null) return null;
  return [
    ...busy === null ? [] : [use.ofNode ? t`processors of the node busy ${busy} %` : t`GPU busy ${busy} %`],
    ...held === null ? [] : [t`memory ${held} % held`],
  ];
}

/** The newest that is known, in words. */
export function newestOf(use: Use): string[] {
  const last = Math.max(...[use.utilization, use.memory].map((values) => values.findLastIndex((one) => one !== null)));
  return toldAt(use, use.since + last * use.bucket) ?? [];
}
