import { plural, t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useState } from "react";

import { fileUrl, useCheckpoints, useDeleteCheckpoint } from "../api/jobs";
import { useMayChange, useSettings } from "../api/session";
import type { Checkpoint, Job } from "../api/types";
import { type ReasonToKeep, type Repeat, reasonsToKeep, repeated } from "../lib/checkpoints";
import { bytes, metric, number, UNKNOWN } from "../lib/format";
import { maySubmit } from "../lib/rights";
import { isFinal } from "../lib/states";
import { duration } from "../lib/time";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Time } from "../ui/Time";
import { useStart } from "./Actions";

/** Saved states of the training, the newest first. */
export function Checkpoints({ job }: { job: Job }) {
  const checkpoints = useCheckpoints(job);
  const [doomed, setDoomed] = useState<Checkpoint | null>(null);
  const start = useStart(job);
  const mine = useMayChange(job);
  const submits = maySubmit(useSettings().data, job.project);
  const shown = checkpoints.data?.toSorted((a, b) => b.step - a.step) ?? [];
  return (
    <Panel title={t`Checkpoints`} tools={<span className="faint">{bytes(job.storage.checkpoints)}</span>}>
      <Notice error={checkpoints.error ?? start.error} />
      {checkpoints.data?.length === 0 && <NoCheckpoints over={isFinal(job.state)} />}
      {shown.length > 0 && (
        <div className="checkpoints-box" tabIndex={0} role="group" aria-label={t`Table of checkpoints`}>
          <table className="plain-table stacking checkpoints">
            <thead>
              <tr>
                <th><Trans>Step</Trans></th>
                <th><Trans>Saved</Trans></th>
                <th className="num"><Trans>Size</Trans></th>
                <th><Trans>Where</Trans></th>
                <th><Trans>Kept as</Trans></th>
                <th><Trans>Metrics</Trans></th>
                <th><Trans>A rerun repeats</Trans></th>
                <th><span className="visually-hidden"><Trans>Actions</Trans></span></th>
              </tr>
            </thead>
            <tbody>
              {shown.map((one) => (
                <Row
                  key={one.id}
                  checkpoint={one}
                  keeps={reasonsToKeep(one, shown[0]?.step ?? 0)}
                  repeat={repeated(one, shown, job.progress?.step ?? null)}
                  onRerun={submits ? () => start.run({ from: one.id, carry: false }) : null}
                  busy={start.isPending}
                  onDelete={mine ? () => setDoomed(one) : null}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {doomed !== null && <DeleteDialog checkpoint={doomed} onClose={() => setDoomed(null)} />}
    </Panel>
  );
}

function NoCheckpoints({ over }: { over: boolean }) {
  return (
    <p className="soft pad">
      {over ? t`This job saved no checkpoint.` : t`No checkpoint yet.`}{" "}
      <Trans>
        A script saves them with <code>torchyard.checkpoint(step=step)</code>, and a job that has one can go on from
        there.
      </Trans>
    </p>
  );
}

interface RowProps {
  checkpoint: Checkpoint;
  keeps: readonly ReasonToKeep[];
  repeat: Repeat | null;
  /** Null where the viewer may not. */
  onRerun: (() => void) | null;
  /** A rerun is on its way. */
  busy: boolean;
  onDelete: (() => void) | null;
}

function Row({ checkpoint, keeps, repeat, onRerun, busy, onDelete }: RowProps) {
  const { step, state, pinned, metrics, size, attempt, created_at: at } = checkpoint;
  return (
    <tr>
      <th scope="row">
        <Trans>step {{ step: number(step) }}</Trans>
        <Files checkpoint={checkpoint} />
      </th>
      <td data-label={t`Saved`}><Time at={at} />{attempt > 1 && <div className="faint"><Trans>attempt {attempt}</Trans></div>}</td>
      <td className="num" data-label={t`Size`}>{bytes(size)}</td>
      <td data-label={t`Where`}><span className={`badge ${state}`} title={WHERE[state].title}>{WHERE[state].word}</span></td>
      <td data-label={t`Kept as`}>
        {keeps.map((key) => (
          <span key={key} className={`badge ${key}`} title={KEPT[key].title}>{KEPT[key].word}</span>
        ))}
      </td>
      <td data-label={t`Metrics`}>
        {Object.entries(metrics).map(([name, value]) => (
          <div key={name}><span className="faint">{name}</span> {metric(value)}</div>
        ))}
      </td>
      <td data-label={t`A rerun repeats`}>{repeat === null ? UNKNOWN : repeatWords(repeat)}</td>
      <td className="checkpoint-actions">
        {onRerun !== null && (
          <button type="button" className="button small" onClick={onRerun} disabled={busy}>
            <Trans>Rerun from here</Trans>
          </button>
        )}
        {onDelete !== null && (
          <button type="button" className="button small ghost" onClick={onDelete} disabled={pinned}>
            <Trans>Delete</Trans>
          </button>
        )}
      </td>
    </tr>
  );
}

interface Badge {
  word: string;
  title: string;
}

const WHERE: Record<Checkpoint["state"], Badge> = {
  stored: { word: t`stored`, title: t`In the store of the service` },
  committed: { word: t`committed`, title: t`Still on its node only` },
};
const KEPT: Record<ReasonToKeep, Badge> = {
  newest: { word: t`newest`, title: t`A retry or a resume goes on from it` },
  best: { word: t`best`, title: t`The best by the metric of the spec` },
  pinned: { word: t`pinned`, title: t`A waiting job needs it` },
};

function repeatWords({ steps, seconds }: Repeat): string {
  if (steps === 0) return t`nothing`;
  if (seconds === null) return plural(steps, { one: "# step", other: "# steps" });
  const time = duration(seconds);
  return plural(steps, { one: `# step, about ${time}`, other: `# steps, about ${time}` });
}

function Files({ checkpoint: { id, files, state } }: { checkpoint: Checkpoint }) {
  return (
    <details>
      <summary><Plural value={{ count: files.length }} one="# file" other="# files" /></summary>
      <ul className="files">
        {files.map((file) => (
          <li key={file.name}>
            {state === "stored"
              ? <a href={fileUrl("checkpoints", id, "files", file.name)} download>{file.name}</a>
              : <span title={WHERE.committed.title}>{file.name}</span>}
            <span className="num faint">{bytes(file.size)}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

function DeleteDialog({ checkpoint, onClose }: { checkpoint: Checkpoint; onClose: () => void }) {
  const remove = useDeleteCheckpoint();
  return (
    <Dialog
      title={t`Delete the checkpoint of step ${{ step: number(checkpoint.step) }}?`}
      confirm={t`Delete it`}
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate(checkpoint.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p><Trans>Its {{ size: bytes(checkpoint.size) }} are gone for good.</Trans></p>
      <Notice error={remove.error} />
    </Dialog>
  );
}
