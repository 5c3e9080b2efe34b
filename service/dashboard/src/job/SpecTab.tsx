import { Link } from "@tanstack/react-router";
import { useMemo } from "react";

import { useMentioned } from "../api/jobs";
import type { Job } from "../api/types";
import { differences } from "../lib/differences";
import { Panel } from "../ui/Panel";
import { Spec } from "./Spec";
import { SpecCode } from "./SpecCode";

/** What was submitted: the spec and the code, each with what differs from the job that it is a rerun of. */
export function SpecTab({ job }: { job: Job }) {
  return (
    <>
      {job.rerun_of !== null && <FromParent job={job} parent={job.rerun_of} />}
      <Spec spec={job.spec} />
      <SpecCode job={job} />
    </>
  );
}

/** Fields that this job has otherwise than the one before it. */
function FromParent({ job, parent }: { job: Job; parent: string }) {
  const before = useMentioned(parent).data;
  const found = useMemo(() => (before === undefined ? [] : differences([before.spec, job.spec])), [before, job.spec]);
  if (before === undefined) return null;
  const numbers = `${before.number},${job.number}`;
  return (
    <Panel
      title={`Changed since job ${before.number}`}
      tools={<Link to="/compare" search={{ jobs: numbers }} className="button small">Compare both</Link>}
    >
      {found.length === 0
        ? <p className="soft pad">The spec is that of <JobOf job={before} />.</p>
        : (
            <dl className="differences">
              {found.map(({ path, values }) => (
                <div key={path}>
                  <dt>{path}</dt>
                  <dd><del>{textOf(values, 0)}</del> <ins>{textOf(values, 1)}</ins></dd>
                </div>
              ))}
            </dl>
          )}
    </Panel>
  );
}

function textOf(values: readonly { text: string; of: number[] }[], which: number): string {
  const text = values.find(({ of }) => of.includes(which))?.text ?? "";
  return text === "" ? "not set" : text;
}

function JobOf({ job }: { job: Job }) {
  return <Link to="/jobs/$jobId" params={{ jobId: String(job.number) }}>{job.number} {job.name}</Link>;
}
