import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useDiscard } from "../api/jobs";
import type { Job } from "../api/types";
import { bytes } from "../lib/format";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Time } from "../ui/Time";

export function DiscardDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const discard = useDiscard();
  const { storage } = job;
  const [checkpoints, outputs, logs] = [bytes(storage.checkpoints), bytes(storage.outputs), bytes(storage.logs)];
  return (
    <Dialog
      title={t`Discard the files of job ${{ number: job.number }}?`}
      confirm={t`Discard for good`}
      danger
      busy={discard.isPending}
      onConfirm={() => discard.mutate(job.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>
        <Trans>
          Its checkpoints ({checkpoints}), outputs ({outputs}), logs ({logs}) and metrics are gone then. Its spec, code,
          events and last values stay, and it can be run again.
        </Trans>
      </p>
      <Notice error={discard.error} />
    </Dialog>
  );
}

/** Instead of what a job wrote, once that is gone. */
export function Discarded({ at }: { at: string }) {
  return (
    <Panel title={t`Files`}>
      <p className="soft pad">
        <Trans>Logs, metrics, checkpoints and outputs of this job were discarded on <Time at={at} />.</Trans>
      </p>
    </Panel>
  );
}
