import { t } from "@lingui/core/macro";

import type { Environment } from "../api/types";
import { type Difference, differences } from "./differences";

/** Python and packages whose versions are not the same wherever they are known; an empty text: not installed. */
export function packageDifferences(environments: readonly (Environment | null)[]): Difference[] {
  const known = environments.flatMap((one, index) => (one === null ? [] : [{ one, index }]));
  const found = differences(known.map(({ one }) => ({ Python: one.python, packages: named(one.packages) })));
  return found.map(({ path, values }) => ({
    path: path.replace("packages.", ""),
    values: values.map(({ text, of }) => ({ text, of: of.flatMap((at) => known[at]?.index ?? []) })),
  }));
}

function named(packages: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(packages).map(([name, version]) => [name, versionText(version)]));
}

export function versionText(version: string): string {
  return version === "" ? t`version unknown` : version;
}

/** The packages whose names hold the words, by name. */
export function matching(packages: Record<string, string>, words: string): [string, string][] {
  const wanted = words.trim().toLowerCase().replaceAll(/[._]/g, "-");
  return Object.entries(packages).filter(([name]) => name.includes(wanted)).sort(([a], [b]) => (a < b ? -1 : 1));
}
