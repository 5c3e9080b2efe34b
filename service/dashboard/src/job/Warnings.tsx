import { Trans } from "@lingui/react/macro";

import type { Job } from "../api/types";

/** What the owner should know of the training's state: that it is not saved, or not resumed exactly. */
export function Warnings({ job }: { job: Job }) {
  return (
    <>
      {job.unsaved != null && (
        <p className="job-warning" role="status">
          <Trans>The newest checkpoint could not be written: {{ reason: job.unsaved }}</Trans>
        </p>
      )}
      {job.inexact != null && (
        <p className="job-warning" role="status">
          <Trans>A stop of this training is not resumed exactly: {{ reason: job.inexact }}</Trans>
        </p>
      )}
    </>
  );
}
