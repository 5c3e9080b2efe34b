import { t } from "@lingui/core/macro";

import type { Job } from "../api/types";
import { number } from "./format";
import { mayChange, maySubmit, type Viewer } from "./rights";

export type JobState = Job["state"];

/** What a state is called. */
export const STATE_LABELS: Readonly<Record<JobState, string>> = {
  queued: t`queued`, assigned: t`assigned`, starting: t`starting`, running: t`running`, stopping: t`stopping`,
  unreachable: t`unreachable`, succeeded: t`succeeded`, failed: t`failed`, cancelled: t`cancelled`,
};
/** What a queued job is called that its owner holds, or that waits for other jobs. */
export const [HELD, BLOCKED] = [t`held`, t`blocked`];

/** The tabs of the list; each stands for the states that a person thinks of as one. */
export const TABS = [
  { key: "all", label: t`All`, states: [] },
  { key: "waiting", label: t`Waiting`, states: ["queued"] },
  { key: "active", label: t`Active`, states: ["assigned", "starting", "running", "stopping", "unreachable"] },
  { key: "succeeded", label: t`Succeeded`, states: ["succeeded"] },
  { key: "failed", label: t`Failed`, states: ["failed"] },
  { key: "cancelled", label: t`Cancelled`, states: ["cancelled"] },
] as const satisfies readonly { key: string; label: string; states: readonly JobState[] }[];

export type TabKey = (typeof TABS)[number]["key"];

export const FINAL: readonly JobState[] = ["succeeded", "failed", "cancelled"];

export function isFinal(state: JobState): boolean {
  return FINAL.includes(state);
}

export function statesOf(tab: TabKey): readonly JobState[] {
  return TABS.find((candidate) => candidate.key === tab)?.states ?? [];
}

/** The tag of jobs that keep their files, however old they are. */
const KEEP = "keep";

/** When the files of a job go, where the installation keeps them for so many seconds; null if they stay. */
export function keptUntil(job: Pick<Job, "ended_at" | "tags" | "discarded_at">, keepS: number | null): string | null {
  if (keepS === null || job.ended_at === null || job.discarded_at != null || job.tags.includes(KEEP)) return null;
  return new Date(Date.parse(job.ended_at) + keepS * 1_000).toISOString();
}

/** Jobs per tab, from jobs per state: a sum with one of which there may be more is so many or more. */
export function countsPerTab(
  counts: Partial<Record<string, number>>, more: readonly string[] = [],
): Record<TabKey, string> {
  const sum = (states: readonly string[]) => {
    const total = states.reduce((before, state) => before + (counts[state] ?? 0), 0);
    return number(total) + (states.some((state) => more.includes(state)) ? "+" : "");
  };
  return Object.fromEntries(
    TABS.map((tab) => [tab.key, sum(tab.key === "all" ? [...new Set([...Object.keys(counts), ...more])] : tab.states)]),
  ) as Record<TabKey, string>;
}

export type Action = "cancel" | "rerun" | "checkpoint" | "stacks" | "edit" | "hold" | "release" | "discard" | "share";

type Acted = Pick<Job, "user" | "project" | "state" | "held" | "stop" | "discarded_at">;

/** What the viewer may ask of a job in its state. */
export function actionsFor(job: Acted, viewer: Viewer | null | undefined): ReadonlySet<Action> {
  const actions = new Set<Action>(maySubmit(viewer, job.project) ? ["rerun"] : []);
  if (!mayChange(viewer, job)) return actions;
  if (viewer?.shared_links === true) actions.add("share");
  if (isFinal(job.state)) return job.discarded_at == null ? actions.add("discard") : actions;
  actions.add("edit");
  if (job.stop !== "cancel") actions.add("cancel");
  if (job.state === "running") actions.add("checkpoint").add("stacks");
  if (job.state === "queued") actions.add(job.held ? "release" : "hold");
  return actions;
}
