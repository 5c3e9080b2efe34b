import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";

import { useCancel, useCheckpointNow, useCheckpoints, useDumpStacks, useHold, useRelease, useRerun } from "../api/jobs";
import { useSettings } from "../api/session";
import type { Job } from "../api/types";
import { SCRATCH, type Start, StartChoice } from "./StartChoice";
import { isAwaited } from "../lib/checkpoints";
import { type Action, actionsFor } from "../lib/states";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { useResource } from "../ui/useResource";
import { DiscardDialog } from "./Discard";
import { EditDialog } from "./EditDialog";
import { ShareDialog } from "./ShareDialog";

type Asked = keyof typeof DIALOGS;

export function Actions({ job }: { job: Job }) {
  const allowed = actionsFor(job, useSettings().data);
  const [asking, setAsking] = useState<Asked | null>(null);
  return (
    <div className="actions">
      <Requests job={job} allowed={allowed} />
      {allowed.has("edit") && (
        <button type="button" className="button" onClick={() => setAsking("edit")}><Trans>Edit</Trans></button>
      )}
      {allowed.has("rerun") && (
        <>
          <button type="button" className="button" onClick={() => setAsking("rerun")}><Trans>Rerun</Trans></button>
          <Link to="/submit" search={{ from: job.number }} className="button"><Trans>Rerun with edits</Trans></Link>
        </>
      )}
      {allowed.has("share") && (
        <button type="button" className="button" onClick={() => setAsking("share")}>
          <Trans>Share a link…</Trans>
        </button>
      )}
      {allowed.has("discard") && (
        <button type="button" className="button" onClick={() => setAsking("discard")}>
          <Trans>Discard files</Trans>
        </button>
      )}
      {allowed.has("cancel") && (
        <button type="button" className="button danger" onClick={() => setAsking("cancel")}>
          <Trans>Cancel</Trans>
        </button>
      )}
      {asking !== null && <Question asked={asking} job={job} onClose={() => setAsking(null)} />}
    </div>
  );
}

/** What is done at once, without a question. */
function Requests({ job, allowed }: { job: Job; allowed: ReadonlySet<Action> }) {
  const checkpoint = useCheckpointNow();
  const { data: checkpoints } = useCheckpoints(job, checkpoint.isSuccess);
  const dump = useDumpStacks();
  const hold = useHold();
  const release = useRelease();
  return (
    <>
      {allowed.has("checkpoint") && (
        <Button
          label={isAwaited(checkpoint.data, job, checkpoints) ? t`Checkpoint asked for` : t`Checkpoint now`}
          change={checkpoint}
          id={job.id}
        />
      )}
      {allowed.has("stacks") && <Button label={t`Dump stacks`} change={dump} id={job.id} />}
      {allowed.has("hold") && <Button label={t`Hold`} change={hold} id={job.id} />}
      {allowed.has("release") && <Button label={t`Release`} change={release} id={job.id} />}
      <Notice error={checkpoint.error ?? dump.error ?? hold.error ?? release.error} />
    </>
  );
}

const DIALOGS = {
  cancel: CancelDialog, edit: EditDialog, rerun: RerunDialog, discard: DiscardDialog, share: ShareDialog,
};

function Question({ asked, job, onClose }: { asked: Asked; job: Job; onClose: () => void }) {
  const Asking = DIALOGS[asked];
  return <Asking job={job} onClose={onClose} />;
}

interface ButtonProps {
  label: string;
  id: string;
  change: { mutate: (id: string) => void; isPending: boolean };
}

function Button({ label, id, change }: ButtonProps) {
  return (
    <button type="button" className="button" disabled={change.isPending} onClick={() => change.mutate(id)}>{label}</button>
  );
}

function CancelDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const { many } = useResource();
  const cancel = useCancel();
  const confirm = () => cancel.mutate(job.id, { onSuccess: onClose });
  return (
    <Dialog
      title={t`Cancel job ${{ number: job.number }}?`}
      confirm={t`Cancel the job`}
      danger
      busy={cancel.isPending}
      onConfirm={confirm}
      onClose={onClose}
    >
      <p>
        {job.state === "queued"
          ? t`It leaves the queue at once.`
          : t`It is asked to save a checkpoint, then it is stopped and its ${many} are free. It can be rerun from there.`}
      </p>
      <Notice error={cancel.error} />
    </Dialog>
  );
}

function RerunDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const [chosen, setChosen] = useState(SCRATCH);
  const start = useStart(job, onClose);
  return (
    <Dialog
      title={t`Run job ${{ number: job.number }} again?`}
      confirm={t`Submit a new job`}
      busy={start.isPending}
      onConfirm={() => start.run(chosen)}
      onClose={onClose}
    >
      <StartChoice
        job={job}
        chosen={chosen}
        onChoose={setChosen}
        legend={t`The same spec is submitted as a new job.`}
      />
      <Notice error={start.error} />
    </Dialog>
  );
}

/** Submits a job again and goes to the new one. */
export function useStart(job: Job, onDone?: () => void) {
  const navigate = useNavigate();
  const rerun = useRerun();
  const run = (begin: Start) => rerun.mutate({ job: job.id, ...begin }, {
    onSuccess: (made) => {
      onDone?.();
      void navigate({ to: "/jobs/$jobId", params: { jobId: String(made.number) } });
    },
  });
  // The page of the new job may take a moment.
  return { run, isPending: rerun.isPending || rerun.isSuccess, error: rerun.error };
}
