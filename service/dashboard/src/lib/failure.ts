import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { JobError } from "../api/types";
import type { adviceOn } from "./failureAdvice";
import { retried } from "./load";

let advise: typeof adviceOn = () => null;

/** Loads what is advised, for those who do not read it in the service's own English: the first view does without. */
export async function learnAdvice(): Promise<void> {
  const found = await retried(() => import("./failureAdvice")).catch(() => null);
  if (found !== null) advise = found.adviceOn;
}

type Failure = Pick<JobError, "message" | "traceback" | "cause" | "params" | "rank" | "exit_code">;

/** A failure in words. */
export interface FailureWords {
  /** The exception's own line, or what the service says where there is none. */
  headline: string;
  /** How the process ended, where the headline does not say it: `rank 0 exited with code 1`. */
  how: string | null;
  /** What to do about a failure that is known. */
  advice: string | null;
}

const TRACEBACK = "Traceback (most recent call last):";
/** A script that cannot be compiled has no traceback, only the place and the error. */
const NOT_COMPILED = /^ +File .*\n(?: .*\n)*((?:Syntax|Indentation|Tab)Error: .*)/m;
/** How the service begins when it tells of the end of a process. */
const ENDED = /^((?:rank \d+|the launcher|exited|killed)[^:]*): (.+)$/s;

/** A failure in the chosen language; in the service's own words in English, and where there are no others. */
export function failureWords(error: Failure, locale = i18n.locale): FailureWords {
  const raised = raisedLine(error.traceback ?? "");
  const advice = locale === "en" ? null : advise(error);
  const how = locale === "en" ? null : howWords(error);
  if (raised !== null) return withException(error, raised, how, advice);
  if (advice !== null && error.params.told === "advice") return { headline: advice, how: null, advice: null };
  return { headline: how ?? error.message, how: null, advice };
}

function withException({ message }: Failure, raised: string, how: string | null, advice: string | null): FailureWords {
  const [, ended, told] = ENDED.exec(message) ?? [];
  const said = told === undefined || told === raised ? null : told;
  return { headline: raised, how: how ?? ended ?? message, advice: advice ?? said };
}

/** A failure as one sentence in the chosen language; null for an older one, which only the service has words for. */
export function failureSentence(error: Failure): string | null {
  const advice = advise(error);
  const how = howWords(error);
  if (how === null) return error.params.told === "advice" ? advice : null;
  const { own } = error.params;
  const more = typeof own === "string" && own !== "" ? own : advice;
  return more === null ? how : t`${how}: ${more}`;
}

/** How its process ended, or what was said of that. */
function howWords({ rank, exit_code: code, params: { told, said, node, signal } }: Failure): string | null {
  if (told === "said" && typeof said === "string") return said;
  if (told !== "exit") return null;
  const who = whose(rank ?? null, typeof node === "string" ? node : null);
  if (typeof signal === "string") return who === null ? t`killed by ${signal}` : t`${who} was killed by ${signal}`;
  const exit = String(code);
  return who === null ? t`exited with code ${exit}` : t`${who} exited with code ${exit}`;
}

function whose(rank: number | null, node: string | null): string | null {
  if (rank === null) return node === null ? null : t`the launcher on node ${node}`;
  return node === null ? t`rank ${rank}` : t`rank ${rank} on node ${node}`;
}

/** The line of the exception that was raised last, as Python writes it behind the frames. */
function raisedLine(traceback: string): string | null {
  const begin = traceback.lastIndexOf(TRACEBACK);
  if (begin < 0) return NOT_COMPILED.exec(traceback)?.[1]?.trimEnd() ?? null;
  const lines = traceback.slice(begin + TRACEBACK.length).split("\n");
  return lines.find((line) => /^\S/.test(line))?.trimEnd() ?? null;
}
