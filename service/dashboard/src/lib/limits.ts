import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { Finding } from "../api/types";

/** Why a node's kernel holds jobs to no limits, by the code of the finding. */
export const LIMITS: Readonly<Record<string, string>> = {
  "cgroups-off": t`TORCHYARD_CGROUPS=0 switches cgroups off`,
  "cgroups-not-delegated": t`the worker is not root, and no cgroup was delegated to it (Delegate=yes, DelegateSubgroup=worker)`,
  "cgroups-not-writable": t`no cgroup hierarchy with controllers can be written here, as in most containers`,
};

/** The same in the chosen language; in the node's own words in English, and where there are no others. */
export function limitWords(found: Finding | null | undefined, message: string, locale = i18n.locale): string {
  if (locale === "en" || found == null || !Object.hasOwn(LIMITS, found.code)) return message;
  return LIMITS[found.code] ?? message;
}
