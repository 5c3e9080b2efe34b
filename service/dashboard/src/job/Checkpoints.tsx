import { useState } from "react";

import { fileUrl, useCheckpoints, useDeleteCheckpoint } from "../api/jobs";
import { useMayChange, useSettings } from "../api/session";
import type { Checkpoint, Job } from "../api/types";
import { bytes, metric } from "../lib/format";
import { maySubmit } from "../lib/rights";
import { isFinal } from "../lib/states";
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
      <ul className="checkpoints">
        {shown.map((one) => (
          <Row
            key={one.id}
            checkpoint={one}
            onRerun={submits ? () => start.run({ from: one.id, carry: false }) : null}
            onDelete={mine ? () => setDoomed(one) : null}
          />
        ))}
      </ul>
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
  /** Null where the viewer may not. */
  onRerun: (() => void) | null;
  onDelete: (() => void) | null;
}

function Row({ checkpoint, onRerun, onDelete }: RowProps) {
  const { step, state, best, pinned, metrics, size, files, created_at: at } = checkpoint;
  return (
    <li>
      <div className="checkpoint-head">
        <span className="checkpoint-step">step {step.toLocaleString()}</span>
        {best && <span className="badge best">best</span>}
        <span className={`badge ${state}`}>{state}</span>
        {pinned && <span className="badge" title="A waiting job needs it">pinned</span>}
        <span className="faint">{bytes(size)} · <Time at={at} /></span>
        <span className="checkpoint-actions">
          {onRerun !== null && <button type="button" className="button small" onClick={onRerun}>Rerun from here</button>}
          {onDelete !== null && (
            <button type="button" className="button small ghost" onClick={onDelete} disabled={pinned}>Delete</button>
          )}
        </span>
      </div>
      <div className="checkpoint-metrics">
        {Object.entries(metrics).map(([name, value]) => (
          <span key={name}><span className="faint">{name}</span> {metric(value)}</span>
        ))}
      </div>
      <details>
        <summary>{files.length === 1 ? "1 file" : `${files.length} files`}</summary>
        <ul className="files">
          {files.map((file) => (
            <li key={file.name}>
              {state === "stored"
                ? <a href={fileUrl("checkpoints", checkpoint.id, "files", file.name)} download>{file.name}</a>
                : <span title="Still on its node only">{file.name}</span>}
              <span className="num faint">{bytes(file.size)}</span>
            </li>
          ))}
        </ul>
      </details>
    </li>
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
