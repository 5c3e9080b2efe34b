import { t } from "@lingui/core/macro";

import type { Series } from "../api/types";
import { isHeldOut, kindOf, lastWord } from "./metricNames";

/** Series that belong on one chart. */
export interface ChartGroup {
  /** The metric's name where there is one, else what the names have in common. */
  name: string;
  series: Series[];
}

/** Charts under one heading. */
export interface ChartSection {
  title: string;
  groups: ChartGroup[];
  /** Whether it is closed at first. */
  folded: boolean;
}

const SPLIT = /^(?:train|training|val|valid|validation|eval|test)[/_]/;
const MEMBER = /[/._](?:rank|gpu|device|node)?[/._]?\d+$/;

/** `loss` of `train/loss`, `memory_peak` of `memory_peak/rank0`; other names stay whole. */
function keyOf(name: string): string {
  return name.replace(SPLIT, "").replace(MEMBER, "");
}

/** Metrics that belong on one chart, in order of their first appearance. */
export function groupSeries(series: readonly Series[]): ChartGroup[] {
  const groups = new Map<string, Series[]>();
  for (const one of series) groups.set(keyOf(one.name), [...groups.get(keyOf(one.name)) ?? [], one]);
  return [...groups].map(([key, members]) => {
    const names = new Set(members.map((one) => one.name));
    return { name: names.size === 1 ? members[0]?.name ?? key : key, series: members };
  });
}

const PINNED = t`Pinned`;
const MAIN = t`Losses and accuracies`;
const OTHER = t`Other metrics`;
const SYSTEM = t`System`;

/** Charts by section: pinned ones, losses and accuracies, then each prefix of names; what the machine did is last. */
export function sectionsOf(groups: readonly ChartGroup[], pinned: readonly string[]): ChartSection[] {
  const sections = new Map<string, ChartGroup[]>([[PINNED, []], [MAIN, []]]);
  for (const group of groups) {
    const title = pinned.includes(group.name) ? PINNED : titleOf(group);
    sections.set(title, [...sections.get(title) ?? [], group]);
  }
  const system = sections.get(SYSTEM) ?? [];
  sections.delete(SYSTEM);
  sections.set(SYSTEM, system);
  for (const [title, members] of sections) if (title !== PINNED) members.sort(byNumberedName);
  sections.get(MAIN)?.sort((a, b) => weight(a) - weight(b));
  const filled = [...sections].filter(([, members]) => members.length > 0);
  return filled.map(([title, members]) => ({ title, groups: members, folded: title === SYSTEM && filled.length > 1 }));
}

/** `layers/2` before `layers/10`. */
function byNumberedName(one: ChartGroup, other: ChartGroup): number {
  return one.name.localeCompare(other.name, undefined, { numeric: true });
}

function titleOf({ name, series }: ChartGroup): string {
  const kinds = series.map((one) => kindOf(one.name));
  if (kinds.some((kind) => kind === "loss" || kind === "accuracy")) return MAIN;
  if (kinds.includes("system")) return SYSTEM;
  return name.includes("/") ? name.slice(0, name.indexOf("/")) : OTHER;
}

/** `loss` before what only ends in it, such as `aux_loss`; losses before accuracies. */
function weight({ series }: ChartGroup): number {
  const plain = series.some(({ name }) => /^(?:loss|acc|accuracy)$/.test(lastWord(name)));
  const heldOut = series.some(({ name }) => isHeldOut(name));
  return (plain ? 0 : 4) + (heldOut ? 0 : 2) + (series.some(({ name }) => kindOf(name) === "loss") ? 0 : 1);
}
