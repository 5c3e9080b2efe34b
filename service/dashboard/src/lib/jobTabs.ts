import { t } from "@lingui/core/macro";

/** The tabs of a job's page; the first has the job's own address, the others are named in it. */
export const JOB_TABS = [
  { key: "overview", label: t`Overview` },
  { key: "charts", label: t`Charts` },
  { key: "log", label: t`Log` },
  { key: "checkpoints", label: t`Checkpoints` },
  { key: "machine", label: t`Machine` },
  { key: "spec", label: t`Spec` },
] as const;

export type JobTab = (typeof JOB_TABS)[number]["key"];

/** The tab that an address names; the first where it names none, null for one that there is not. */
export function tabOf(named: string | undefined): JobTab | null {
  if (named === undefined) return JOB_TABS[0].key;
  return JOB_TABS.find(({ key }) => key === named)?.key ?? null;
}
