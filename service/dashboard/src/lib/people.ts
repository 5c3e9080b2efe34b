import { plural, t } from "@lingui/core/macro";

import type { Project, Quota, Role } from "../api/types";

export const ROLES = [
  { key: "administrator", label: t`administrator`, hint: t`everything, other people's jobs included` },
  { key: "member", label: t`member`, hint: t`jobs of their own` },
  { key: "viewer", label: t`viewer`, hint: t`reads, changes nothing` },
] as const satisfies readonly { key: Role; label: string; hint: string }[];

export const READERS = [
  { key: "private", label: t`their owners alone` },
  { key: "project", label: t`members` },
  { key: "everyone", label: t`everyone` },
] as const satisfies readonly { key: Project["visibility"]; label: string }[];

export const SUBMITTERS = [
  { key: "everyone", label: t`everyone but viewers` },
  { key: "members", label: t`members alone` },
] as const satisfies readonly { key: Project["submitters"]; label: string }[];

export const RESTARTS = [
  { key: "on", label: t`after a short trial, for shorter ones` },
  { key: "off", label: t({ message: "never", context: "restarts" }) },
] as const;

export function labelOf<Key extends string>(options: readonly { key: Key; label: string }[], key: Key): string {
  return options.find((option) => option.key === key)?.label ?? key;
}

/** How long a new token counts; null: until it is revoked. */
export const LIFETIMES = [
  { key: "30d", label: t`30 days` },
  { key: "90d", label: t`90 days` },
  { key: "365d", label: t`a year` },
  { key: "never", label: t`until it is revoked` },
] as const;

/** What becomes of the work of somebody who is blocked, in sentences; nothing of jobs where they are not known. */
export function blockedWords(standing: Quota["standing"] | undefined, one: string, many: string): string[] {
  const [held, waiting] = [standing?.gpus ?? 0, standing?.queued ?? 0];
  const words = [t`All tokens and sessions end at once.`];
  const resource = held === 1 ? one : many;
  if (held > 0) words.push(t`What runs goes on to its end: ${held} ${resource} held now.`);
  if (waiting > 0) {
    words.push(plural(waiting, {
      one: "# waiting job will not start until the user is let in again.",
      other: "# waiting jobs will not start until the user is let in again.",
    }));
  }
  if (standing != null && held === 0 && waiting === 0) words.push(t`There are no jobs that run or wait.`);
  words.push(t`Usage, files and finished jobs stay.`);
  return words;
}
