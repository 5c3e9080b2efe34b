import { t } from "@lingui/core/macro";

import type { StartStage } from "../api/types";

type Name = StartStage["name"];

/** What the stages of a start are called. */
export const STAGES: Readonly<Record<Name, string>> = {
  request: t({ message: "request", context: "stage" }),
  queue: t({ message: "queue", context: "stage" }),
  scheduling: t({ message: "scheduling", context: "stage" }),
  publishing: t({ message: "publishing", context: "stage" }),
  delivery: t({ message: "delivery", context: "stage" }),
  launch: t({ message: "launch", context: "stage" }),
  claim: t({ message: "claim", context: "stage" }),
  preparation: t({ message: "preparation", context: "stage" }),
  shim: t({ message: "shim", context: "stage" }),
  fork: t({ message: "fork", context: "stage" }),
  agent: t({ message: "agent", context: "stage" }),
  "agent imports": t({ message: "agent imports", context: "stage" }),
  rank: t({ message: "rank", context: "stage" }),
  program: t({ message: "program", context: "stage" }),
  imports: t({ message: "imports", context: "stage" }),
  rendezvous: t({ message: "rendezvous", context: "stage" }),
  "first step": t({ message: "first step", context: "stage" }),
  "first report": t({ message: "first report", context: "stage" }),
};

/** What a stage is called in the chosen language; a newer service may have one that is not known here. */
export function stageLabel(name: string): string {
  return (STAGES as Readonly<Record<string, string>>)[name] ?? name;
}
