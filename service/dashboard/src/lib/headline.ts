type Value = number | string;

/** How telling a metric is in a list: validation before training, accuracy and loss before the rest. */
function weight(name: string): number {
  const last = name.slice(name.lastIndexOf("/") + 1).toLowerCase();
  const kind = /acc|error|wer|bleu|f1/.test(last) ? 0 : /loss|perplexity/.test(last) ? 1 : 2;
  const part = /^(val|valid|eval|test)/.test(name) ? 0 : 1;
  return kind === 2 ? 4 + part : part * 2 + kind;
}

/** The two latest values that say most about a job. */
export function headline(latest: Readonly<Record<string, Value>>): [string, Value][] {
  return Object.entries(latest)
    .sort(([a], [b]) => weight(a) - weight(b) || a.localeCompare(b))
    .slice(0, 2);
}
