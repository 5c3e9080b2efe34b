import { useState } from "react";

import { fileUrl, useCheckpoints, useDeleteCheckpoint } from "../api/jobs";
import { useMayChange, useSettings } from "../api/session";
import type { Checkpoint, Job } from "../api/types";
import { type Repeat, reasonsToKeep, repeated } from "../lib/checkpoints";
import { bytes, metric, plural, UNKNOWN } from "../lib/format";
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
    <Panel title="Checkpoints" tools={<span className="faint">{bytes(job.storage.checkpoints)}</span>}>
      <Notice error={checkpoints.error ?? start.error} />
      {checkpoints.data?.length === 0 && <NoCheckpoints over={isFinal(job.state)} />}
      {shown.length > 0 && (
        <div className="checkpoints-box" tabIndex={0} role="group" aria-label="Table of checkpoints">
          <table className="plain-table checkpoints">
            <thead>
              <tr>
                <th>Step</th><th>Saved</th><th className="num">Size</th><th>Where</th><th>Kept as</th><th>Metrics</th>
                <th>A rerun repeats</th><th><span className="visually-hidden">Actions</span></th>
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
      {over ? "This job saved no checkpoint." : "No checkpoint yet."} A script saves them with{" "}
      <code>torchyard.checkpoint(step=step)</code>, and a job that has one can go on from there.
    </p>
  );
}

interface RowProps {
  checkpoint: Checkpoint;
  keeps: readonly string[];
  repeat: Repeat | null;
  /** Null where the viewer may not. */
  onRerun: (() => void) | null;
  onDelete: (() => void) | null;
}

function Row({ checkpoint, keeps, repeat, onRerun, onDelete }: RowProps) {
  const { step, state, pinned, metrics, size, attempt, created_at: at } = checkpoint;
  return (
    <tr>
      <th scope="row">
        step {step.toLocaleString()}
        <Files checkpoint={checkpoint} />
      </th>
      <td><Time at={at} />{attempt > 1 && <div className="faint">attempt {attempt}</div>}</td>
      <td className="num">{bytes(size)}</td>
      <td><span className={`badge ${state}`} title={WHERE[state]}>{state}</span></td>
      <td>{keeps.map((word) => <span key={word} className={`badge ${word}`} title={KEPT[word]}>{word}</span>)}</td>
      <td>
        {Object.entries(metrics).map(([name, value]) => (
          <div key={name}><span className="faint">{name}</span> {metric(value)}</div>
        ))}
      </td>
      <td>{repeat === null ? UNKNOWN : repeatWords(repeat)}</td>
      <td className="checkpoint-actions">
        {onRerun !== null && <button type="button" className="button small" onClick={onRerun}>Rerun from here</button>}
        {onDelete !== null && (
          <button type="button" className="button small ghost" onClick={onDelete} disabled={pinned}>Delete</button>
        )}
      </td>
    </tr>
  );
}

const WHERE: Partial<Record<string, string>> = {
  stored: "In the store of the service", committed: "Still on its node only",
};
const KEPT: Partial<Record<string, string>> = {
  newest: "A retry or a resume goes on from it", best: "The best by the metric of the spec", pinned: "A waiting job needs it",
};

function repeatWords({ steps, seconds }: Repeat): string {
  if (steps === 0) return "nothing";
  return `${plural(steps, "step")}${seconds === null ? "" : `, about ${duration(seconds)}`}`;
}

function Files({ checkpoint: { id, files, state } }: { checkpoint: Checkpoint }) {
  return (
    <details>
      <summary>{plural(files.length, "file")}</summary>
      <ul className="files">
        {files.map((file) => (
          <li key={file.name}>
            {state === "stored"
              ? <a href={fileUrl("checkpoints", id, "files", file.name)} download>{file.name}</a>
              : <span title="Still on its node only">{file.name}</span>}
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
      title={`Delete the checkpoint of step ${checkpoint.step.toLocaleString()}?`}
      confirm="Delete it"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate(checkpoint.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>Its {bytes(checkpoint.size)} are gone for good.</p>
      <Notice error={remove.error} />
    </Dialog>
  );
}
