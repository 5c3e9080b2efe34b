import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";

import type { Job } from "../api/types";
import { differences } from "../lib/differences";
import { Panel } from "../ui/Panel";

interface Props {
  before: Job;
  /** The spec that is compared with the job's. */
  after: Job["spec"];
  tools?: ReactNode;
}

/** Fields that a spec has otherwise than a job before it. */
export function SpecChanges({ before, after, tools }: Props) {
  const found = useMemo(() => differences([before.spec, after]), [before, after]);
  return (
    <Panel title={`Changed since job ${before.number}`} tools={tools}>
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
