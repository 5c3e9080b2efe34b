import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useMemo } from "react";

import type { Job } from "../api/types";
import { type Difference, differences } from "../lib/differences";
import { Panel } from "../ui/Panel";

interface Props {
  before: Job;
  /** The spec that is compared with the job's. */
  after: Job["spec"];
  tools?: ReactNode;
}

/** Code is compared line by line elsewhere. */
const EXCEPT = ["code"];

/** Fields that a spec has otherwise than a job before it. */
export function SpecChanges({ before, after, tools }: Props) {
  const found = useMemo(() => differences([before.spec, after], EXCEPT), [before, after]);
  return (
    <Panel title={t`Changed since job ${{ number: before.number }}`} tools={tools}>
      {found.length === 0
        ? <p className="soft pad"><Trans>The spec is that of <JobOf job={before} />.</Trans></p>
        : <Changes found={found} absent={t`not set`} />}
    </Panel>
  );
}

/** What each of two has; `absent` is said of one that lacks it. */
export function Changes({ found, absent }: { found: readonly Difference[]; absent: string }) {
  const textOf = ({ values }: Difference, which: number) => {
    const text = values.find(({ of }) => of.includes(which))?.text ?? "";
    return text === "" ? absent : text;
  };
  return (
    <dl className="differences">
      {found.map((one) => (
        <div key={one.path}>
          <dt>{one.path}</dt>
          <dd><del>{textOf(one, 0)}</del> <ins>{textOf(one, 1)}</ins></dd>
        </div>
      ))}
    </dl>
  );
}

function JobOf({ job }: { job: Job }) {
  return <Link to="/jobs/$jobId" params={{ jobId: String(job.number) }}>{job.number} {job.name}</Link>;
}
