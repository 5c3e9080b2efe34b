import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { StartTiming } from "../api/types";
import { list } from "./format";

type Start = Pick<StartTiming, "cold_reason" | "cold_code" | "cold_params">;

/** Why a start was cold, by its code: words, or what makes them of what the reason names. */
export const COLD: Readonly<Record<string, string | ((said: string) => string)>> = {
  off: t`warm start is off on this node (TORCHYARD_WARM_START)`,
  "not-yet": t`no fork server had this environment yet; one is made for the jobs to come`,
  silent: t`the fork server did not answer`,
  refused: t`what the fork server has forked could not be used (the launcher's log says why)`,
  unfit: (said) => t`its interpreter cannot be shared: ${said}`,
  spec: t`its spec says \`warm_start: false\``,
  "own-network": t`it runs as another account than the worker and has a network of its own`,
  "no-cgroups": t`it runs as another account than the worker, on a node without cgroups to hold its processes together`,
  "several-nodes": t`it runs on several nodes`,
  "bare-command": t`\`launcher: none\` starts its command as it is`,
  "command-line": t`its command line is not one that a fork server can run`,
  "not-python": t`its program was executed: it is no Python`,
  "no-source": t`its program was executed: it is no file of Python source`,
  unreadable: (said) => t`its program was executed, for its files could not be read: ${said}`,
  "own-module": (said) => t`its program was executed: its folder has a module ${said} of its own`,
  "too-large": t`its program was executed: it is too large to be looked through`,
  "sets-torch": t`its program was executed: it may set variables that torch reads when it is imported`,
  "sets-variable": (said) => t`its program was executed: it may set ${said}, which a module reads when it is imported`,
};

/** Why a start was cold, in the chosen language; in the node's own words in English, and where there are no others. */
export function coldWords(start: Start, locale = i18n.locale): string | null {
  return (locale === "en" ? null : told(start)) ?? start.cold_reason;
}

function told({ cold_code: code, cold_params: { said } }: Start): string | null {
  const found = code != null && Object.hasOwn(COLD, code) ? COLD[code] : undefined;
  if (typeof found !== "function") return found ?? null;
  return typeof said === "string" ? found(said) : null;
}

/** Packages that were loaded ahead and are named. */
const NAMED = 5;

/** Names of packages; of many the first, and how many more there are. */
export function packageNames(packages: readonly string[]): string {
  const rest = packages.length - NAMED;
  return rest > 0 ? t`${{ named: list(packages.slice(0, NAMED)) }} and ${rest} more` : list(packages);
}
