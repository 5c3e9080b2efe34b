import { useDiscard } from "../api/jobs";
import type { Job } from "../api/types";
import { bytes } from "../lib/format";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Time } from "../ui/Time";

export function DiscardDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const discard = useDiscard();
  const { checkpoints, outputs, logs } = job.storage;
  return (
    <Dialog
      title={`Discard the files of job ${job.number}?`}
      confirm="Discard for good"
      danger
      busy={discard.isPending}
      onConfirm={() => discard.mutate(job.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>
        Its checkpoints ({bytes(checkpoints)}), outputs ({bytes(outputs)}), logs ({bytes(logs)}) and metrics are gone
        then. Its spec, code, events and last values stay, and it can be run again.
      </p>
      <Notice error={discard.error} />
    </Dialog>
  );
}

/** Instead of what a job wrote, once that is gone. */
export function Discarded({ at }: { at: string }) {
  return (
    <Panel title="Files">
      <p className="soft pad">Logs, metrics, checkpoints and outputs of this job were discarded on <Time at={at} />.</p>
    </Panel>
  );
}
