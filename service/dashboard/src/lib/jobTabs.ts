/** The tabs of a job's page; the first has the job's own address, the others are named in it. */
export const JOB_TABS = [
  { key: "overview", label: "Overview" },
  { key: "charts", label: "Charts" },
  { key: "log", label: "Log" },
  { key: "checkpoints", label: "Checkpoints" },
  { key: "machine", label: "Machine" },
  { key: "spec", label: "Spec" },
] as const;

export type JobTab = (typeof JOB_TABS)[number]["key"];

/** The tab that an address names; the first where it names none, null for one that there is not. */
export function tabOf(named: string | undefined): JobTab | null {
  if (named === undefined) return JOB_TABS[0].key;
  return JOB_TABS.find(({ key }) => key === named)?.key ?? null;
}
