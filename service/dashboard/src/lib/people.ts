import type { Project, Quota, Role } from "../api/types";
import { plural } from "./format";

export const ROLES = [
  { key: "administrator", label: "administrator", hint: "everything, other people's jobs included" },
  { key: "member", label: "member", hint: "jobs of their own" },
  { key: "viewer", label: "viewer", hint: "reads, changes nothing" },
] as const satisfies readonly { key: Role; label: string; hint: string }[];

export const READERS = [
  { key: "private", label: "their owners alone" },
  { key: "project", label: "members" },
  { key: "everyone", label: "everyone" },
] as const satisfies readonly { key: Project["visibility"]; label: string }[];

export const SUBMITTERS = [
  { key: "everyone", label: "everyone but viewers" },
  { key: "members", label: "members alone" },
] as const satisfies readonly { key: Project["submitters"]; label: string }[];

export const RESTARTS = [
  { key: "on", label: "after a short trial, for shorter ones" },
  { key: "off", label: "never" },
] as const;

export function labelOf<Key extends string>(options: readonly { key: Key; label: string }[], key: Key): string {
  return options.find((option) => option.key === key)?.label ?? key;
}

/** How long a new token counts; null: until it is revoked. */
export const LIFETIMES = [
  { key: "30d", label: "30 days" },
  { key: "90d", label: "90 days" },
  { key: "365d", label: "a year" },
  { key: "never", label: "until it is revoked" },
] as const;

/** What becomes of the work of somebody who is blocked, in sentences. */
export function blockedWords(standing: Quota["standing"] | undefined, one: string, many: string): string[] {
  const [held, waiting] = [standing?.gpus ?? 0, standing?.queued ?? 0];
  const words = ["All tokens and sessions end at once."];
  if (held > 0) words.push(`What runs goes on to its end: ${held} ${held === 1 ? one : many} held now.`);
  if (waiting > 0) words.push(`${plural(waiting, "waiting job")} will not start until the user is let in again.`);
  if (held === 0 && waiting === 0) words.push("There are no jobs that run or wait.");
  words.push("Usage, files and finished jobs stay.");
  return words;
}
