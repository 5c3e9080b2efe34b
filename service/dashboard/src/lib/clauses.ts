import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";

import type { Clause } from "../api/types";

type Params = Readonly<Partial<Record<string, string>>>;

/** Sentences about checkpoints, by their codes: what is not exact after a stop, and why nothing was saved. */
export const CLAUSES: Readonly<Record<string, (params: Params) => string | null>> = {
  "other-thread": () => t`batches are taken in another thread, which may be ahead of the training`,
  "several-passes": () => t`several passes through the loader feed one step`,
  ahead: () => t`batches are taken ahead of the step that uses them`,
  "idle-steps": () => t`steps are reported that took no batch from the loader`,
  "more-before": () => t`a pass through the loader that came before the epoch's own takes more batches than it had taken`,
  "other-pass": () => t`the steps of the epoch come from another pass through the loader than before`,
  "passes-fed": () => t`steps of the epoch came from several passes through the loader`,
  "broken-off": () => t`the loop over the loader was left early, perhaps not at the batch where it would have been`,
  "many-passes": () => t`each batch is taken from a pass of its own through the loader`,
  unbounded: () => t`the loop is not one over \`run.epochs\`: what the script counts or draws outside of its batches is not known`,
  "other-loader": () => t`batches are also taken from a loader that is not attached, which begins anew`,
  "other-batches": () => t`its batches are not those of the checkpoint (number of ranks or batch size): the epoch is begun anew`,
  "reads-ahead": () => t`the loader reads one batch ahead, and its data set draws from the global random streams`,
  "read-again": ({ count }) => (count === undefined ? null : t`the data set is an iterable: its first ${count} batches are read again and dropped`),
  placeless: ({ kind }) => (kind === undefined ? null : t`the loader is a ${kind}, which does not tell its place: an epoch is begun anew`),
  "other-places": () => t`each of another number of ranks had its own place in the data: the epoch is begun anew`,
  "begins-anew": ({ names }) => (names === undefined ? null : t`it has no ${names} of each rank's own: it begins anew`),
  "new-streams": ({ ranks }) => (ranks === undefined ? null : t`there were ${ranks} ranks: random streams are new ones`),
  "gradients-lost": ({ ranks }) => (ranks === undefined ? null : t`gradients that ${ranks} ranks had accumulated for their next step are not loaded`),
  "ranks-own": ({ ranks, names }) => (ranks === undefined || names === undefined ? null : t`what was each of ${ranks} ranks' own is not loaded: ${names}`),
  "no-streams": () => t`it holds no random streams`,
  "no-room": ({ free, floor, size }) => (free === undefined || floor === undefined || size === undefined ? null : t`${free} MiB are free, of which ${floor} MiB stay free, and it takes twice ${size} MiB`),
  "not-written": ({ error, free }) => (error === undefined || free === undefined ? null : t`it cannot be written: ${error} (${free} MiB are free)`),
  "save-late": () => t`its next save_state is not due within the grace: set a longer grace, or save more often`,
  late: () => t`no checkpoint was ready within its grace`,
  empty: () => t`Nothing was written into the checkpoint folder: save your state inside the \`with\` block.`,
  "no-group": () => t`Several ranks, but torch.distributed is not initialised: take checkpoints between init and destroy.`,
  "other-rank": () => t`Another rank failed in this checkpoint, so it was not committed: see that rank's log.`,
  "separate-disks": () => t`Ranks write a sharded checkpoint into one folder, but not all of them see that of rank 0: start them in a folder that they share, or through the queue, which brings the files of several nodes together.`,
  "own-file": ({ name }) => (name === undefined ? null : t`${name} is TorchYard's own file: choose another name`),
  "a-link": ({ path }) => (path === undefined ? null : t`${path} is a link: a checkpoint holds files, copy it`),
};

/** A note in the chosen language: by its sentences; in its own words in English, and of those that have no others. */
export function clausesWords(parts: unknown, text: string, locale = i18n.locale): string {
  const clauses = Array.isArray(parts) ? parts as Clause[] : [];
  if (clauses.length === 0) return text;
  return locale === "en" ? clauses.map(({ message }) => message).join("; ") : clauses.map(clauseWords).join(t`; `);
}

function clauseWords({ code, message, params }: Clause): string {
  if (code == null || !Object.hasOwn(CLAUSES, code)) return message;
  const told = Object.fromEntries(Object.entries(params).map(([name, value]) => [name, String(value)]));
  return CLAUSES[code]?.(told) ?? message;
}
