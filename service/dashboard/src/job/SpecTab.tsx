import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";

import { useMentioned } from "../api/jobs";
import type { Job } from "../api/types";
import { Spec } from "./Spec";
import { SpecChanges } from "./SpecChanges";
import { SpecCode } from "./SpecCode";
import { SpecEnvironment } from "./SpecEnvironment";

/** Spec, code and what was installed, each with what differs from the job that it is a rerun of. */
export function SpecTab({ job }: { job: Job }) {
  return (
    <>
      {job.rerun_of !== null && <FromParent job={job} parent={job.rerun_of} />}
      <Spec spec={job.spec} />
      <SpecCode job={job} />
      <SpecEnvironment job={job} />
    </>
  );
}

function FromParent({ job, parent }: { job: Job; parent: string }) {
  const before = useMentioned(parent).data;
  if (before === undefined) return null;
  const numbers = `${before.number},${job.number}`;
  const tools = (
    <Link to="/compare" search={{ jobs: numbers }} className="button small"><Trans>Compare both</Trans></Link>
  );
  return <SpecChanges before={before} after={job.spec} tools={tools} />;
}
