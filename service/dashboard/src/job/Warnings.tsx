import { Trans } from "@lingui/react/macro";
import type { ReactNode } from "react";

import type { Job } from "../api/types";
import { clausesWords } from "../lib/clauses";
import { Coded } from "../ui/Coded";

/** What the owner should know of the training's state: that it is not saved, or not resumed exactly. */
export function Warnings({ job: { unsaved, unsaved_parts, inexact, inexact_parts } }: { job: Job }) {
  return (
    <>
      {unsaved != null && <Unsaved reason={<Coded text={clausesWords(unsaved_parts, unsaved)} />} />}
      {inexact != null && <Inexact reason={<Coded text={clausesWords(inexact_parts, inexact)} />} />}
    </>
  );
}

function Unsaved({ reason }: { reason: ReactNode }) {
  return <p className="job-warning" role="status"><Trans>The newest checkpoint could not be written: {reason}</Trans></p>;
}

function Inexact({ reason }: { reason: ReactNode }) {
  return <p className="job-warning" role="status"><Trans>A stop of this training is not resumed exactly: {reason}</Trans></p>;
}
