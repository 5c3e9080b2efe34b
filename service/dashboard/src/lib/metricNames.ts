import { bytes, metric, percent } from "./format";
import { duration } from "./time";

/** What metrics are about, as far as their names tell. */
export type MetricKind = "accuracy" | "loss" | "other" | "system";

const ACCURACY = /acc|auc|bleu|f1|map|iou|precision|recall|top[-_]?\d|psnr|score/;
const LOSS = /loss|error|perplexity|ppl|nll|wer$|cer$|mse|mae/;
const SYSTEM = new RegExp([
  "^(?:gpu|cpu|system|node|memory|disk|network|machine)(?:[/._]|$)",
  "^(?:throughput|step_time|data_wait|memory_peak|(?:steps|samples|tokens|images)_per)",
  "/(?:fps|throughput|step_time|data_wait)$",
].join("|"));
/** Prefixes that say on which data a metric was measured. */
const SPLIT = /^(train|training|val|valid|validation|eval|test)[/_]/;

export function lastWord(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

export function kindOf(name: string): MetricKind {
  const lower = name.toLowerCase();
  if (SYSTEM.test(lower)) return "system";
  const last = lastWord(lower).replace(SPLIT, "");
  if (LOSS.test(last)) return "loss";
  return ACCURACY.test(last) ? "accuracy" : "other";
}

/** Whether it was measured on data that the training does not see. */
export function isHeldOut(name: string): boolean {
  return /^(?:val|eval|test)/.test(name.toLowerCase());
}

export type MetricUnit = "bytes" | "seconds" | "share" | null;

/** The unit of a metric, where its name leaves no doubt. */
export function unitOf(name: string): MetricUnit {
  const lower = name.toLowerCase();
  if (/(?:^|[/_.])(?:bytes|memory_peak|memory_used)(?:[/_.]|$)/.test(lower)) return "bytes";
  if (/(?:^|[/_.])(?:seconds|secs|duration|step_time)$|(?:_s|_sec)$/.test(lower) && !/per_s(?:ec)?$/.test(lower)) return "seconds";
  return lower === "data_wait" ? "share" : null;
}

/** How values of a metric are written, where its name tells its unit. */
export function wordsOf(name: string): ((value: number) => string) | null {
  const unit = unitOf(name);
  return unit === null ? null : WORDS[unit];
}

/** A value of a metric in its unit; what is no finite number comes as a word. */
export function valueOf(name: string, value: number | string): string {
  return typeof value === "number" ? (wordsOf(name) ?? metric)(value) : metric(value);
}

const WORDS: Record<NonNullable<MetricUnit>, (value: number) => string> = {
  bytes,
  seconds: (value) => (Math.abs(value) < 60 ? `${metric(value)} s` : duration(value)),
  share: percent,
};
