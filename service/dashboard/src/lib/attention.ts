import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { Attention, JobError } from "../api/types";
import { failureWords } from "./failure";
import { findingWords, isFinding } from "./findings";

type Params = Attention["params"];
type Said = Pick<Attention, "kind" | "message" | "params">;

/** Words that follow a job's or node's name; null where the service alone has them, as of what older services tell. */
const WORDS: Record<Attention["kind"], (params: Params) => string | null> = {
  failed: ({ error }) => (isError(error) ? failureWords(error).headline : null),
  hung: () => t`makes no step any more`,
  nan: ({ metric, value }) => (typeof metric === "string" ? t`${metric} is ${{ value: String(value) }}` : null),
  idle: ({ minutes }) => (typeof minutes === "number" ? t`has used no GPU for ${minutes} minutes` : null),
  "node-silent": () => t`is silent`,
  "disk-low": ({ free, least }) => (typeof free === "string"
    ? t`has ${free} of disk free: no job starts there below ${{ least: String(least) }}`
    : null),
  "device-unusable": unusable,
  offender: ({ finding }) => (isFinding(finding) ? findingWords(finding, finding.message) : null),
};

/** What is wrong, in the chosen language; in the service's own words in English, and where there are no others. */
export function attentionWords({ kind, message, params }: Said, locale = i18n.locale): string {
  return (locale === "en" ? null : WORDS[kind](params)) ?? message;
}

function unusable({ unit, index, said: own, finding }: Params): string | null {
  if (typeof own !== "string") return null;
  const said = isFinding(finding) ? findingWords(finding, own) : own;
  const slot = String(index);
  return unit === "gpu" ? t`GPU ${slot} is out of use: ${said}` : t`CPU slot ${slot} is out of use: ${said}`;
}

const isError = (error: unknown): error is JobError => typeof error === "object" && error !== null && "cause" in error;
