import { useState } from "react";

import { useEnvironment, useMentioned } from "../api/jobs";
import type { Environment, Job } from "../api/types";
import { plural } from "../lib/format";
import { matching, packageDifferences, versionText } from "../lib/packages";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Changes } from "./SpecChanges";

/** Packages that are shown at once. */
const MOST = 500;

/** Python and the packages that a job ran with, and what differs from the job that it is a rerun of. */
export function SpecEnvironment({ job }: { job: Job }) {
  const found = useEnvironment(job);
  const own = found.data?.environment ?? null;
  return (
    <Panel title="Environment">
      <Notice error={found.error} />
      {(job.attempt === 0 || found.data?.environment === null) && (
        <p className="soft pad">What is installed is not known: the node tells it some seconds after the start.</p>
      )}
      {own !== null && (
        <>
          <p className="pad environment-facts">
            <span>Python {own.python ?? "of an unknown version"}</span>
            <code>{own.interpreter}</code>
            {job.attempt > 1 && <span className="faint">attempt {found.data?.attempt}</span>}
          </p>
          {own.error != null && <p className="soft pad">{own.error}</p>}
          {job.rerun_of !== null && <SinceParent parent={job.rerun_of} own={own} />}
          <Packages environment={own} />
        </>
      )}
    </Panel>
  );
}

function SinceParent({ parent, own }: { parent: string; own: Environment }) {
  const before = useMentioned(parent).data;
  return before === undefined ? null : <Since before={before} own={own} />;
}

function Since({ before, own }: { before: Job; own: Environment }) {
  const found = useEnvironment(before).data;
  if (found === undefined) return null;
  if (found.environment === null) {
    return <p className="soft pad">What was installed for job {before.number} is not known.</p>;
  }
  const changes = packageDifferences([found.environment, own]);
  if (changes.length === 0) return <p className="soft pad">The same is installed as for job {before.number}.</p>;
  return (
    <>
      <h3 className="environment-head">Changed since job {before.number}</h3>
      <Changes found={changes} absent="not installed" />
    </>
  );
}

function Packages({ environment }: { environment: Environment }) {
  const [words, setWords] = useState("");
  const packages = environment.packages;
  const count = Object.keys(packages).length;
  const shown = matching(packages, words);
  if (count === 0) return null;
  return (
    <div className="environment-packages">
      <input
        type="search"
        aria-label="Filter packages"
        placeholder={plural(count, "package")}
        value={words}
        onChange={({ target }) => setWords(target.value)}
      />
      <ul tabIndex={0} aria-label="Installed packages">
        {shown.slice(0, MOST).map(([name, version]) => (
          <li key={name}>{name} <span className="soft num">{versionText(version)}</span></li>
        ))}
      </ul>
      {shown.length > MOST && <p className="faint">and {shown.length - MOST} more: filter them</p>}
      {environment.left_out > 0 && <p className="faint">{environment.left_out} more are not recorded</p>}
    </div>
  );
}
