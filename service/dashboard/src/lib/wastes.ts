import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { Waste } from "../api/types";
import { fixed, list } from "./format";

/** What came of the time, and the mend, by the kind of waste. */
export const WASTES: Record<Waste["kind"], (waste: { count: number; user: string; hours: string; jobs: string }) => string> = {
  idle: ({ count, user, hours, jobs }) => t`${count} jobs of ${user} held GPUs idle for ${hours} GPU-hours (${jobs}): set \`idle_limit\`, and look whether data are loaded fast enough`,
  failed: ({ count, user, hours, jobs }) => t`${count} jobs of ${user} failed after ${hours} GPU-hours (${jobs}): set \`checkpoint.every\` and \`max_retries\`, and try new code with a short \`time_limit\``,
  lost: ({ count, user, hours, jobs }) => t`${count} jobs of ${user} did ${hours} GPU-hours again or started again (${jobs}): have them save checkpoints, or save more often (\`checkpoint.every\`)`,
};

/** GPU time that came to nothing, in the chosen language; in the service's own words in English. */
export function wasteWords(waste: Waste, locale = i18n.locale): string {
  if (locale === "en") return waste.message;
  const { kind, count, user, gpu_hours: hours, jobs } = waste;
  const more = jobs.length < count ? ["…"] : [];
  return WASTES[kind]({ count, user, hours: fixed(hours, 1), jobs: list([...jobs.map(String), ...more]) });
}
