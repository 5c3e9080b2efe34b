import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useEnvironment, useMentioned } from "../api/jobs";
import type { Environment, Job } from "../api/types";
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
    <Panel title={t`Environment`}>
      <Notice error={found.error} />
      {(job.attempt === 0 || found.data?.environment === null) && (
        <p className="soft pad">
          <Trans>What is installed is not known: the node tells it some seconds after the start.</Trans>
        </p>
      )}
      {own !== null && (
        <>
          <Python environment={own} attempt={job.attempt > 1 ? found.data?.attempt : undefined} />
          {own.error != null && <p className="soft pad">{own.error}</p>}
          {job.rerun_of !== null && <SinceParent parent={job.rerun_of} own={own} />}
          <Packages environment={own} />
        </>
      )}
    </Panel>
  );
}

/** Which Python it was; `attempt` is told where there are several. */
function Python({ environment, attempt }: { environment: Environment; attempt: number | null | undefined }) {
  const { python, interpreter } = environment;
  return (
    <p className="pad environment-facts">
      <span>{python == null ? t`Python of an unknown version` : `Python ${python}`}</span>
      <code>{interpreter}</code>
      {attempt != null && <span className="faint"><Trans>attempt {attempt}</Trans></span>}
    </p>
  );
}

function SinceParent({ parent, own }: { parent: string; own: Environment }) {
  const before = useMentioned(parent).data;
  return before === undefined ? null : <Since before={before} own={own} />;
}

function Since({ before, own }: { before: Job; own: Environment }) {
  const found = useEnvironment(before).data;
  const { number } = before;
  if (found === undefined) return null;
  if (found.environment === null) {
    return <p className="soft pad"><Trans>What was installed for job {number} is not known.</Trans></p>;
  }
  const changes = packageDifferences([found.environment, own]);
  if (changes.length === 0) {
    return <p className="soft pad"><Trans>The same is installed as for job {number}.</Trans></p>;
  }
  return (
    <>
      <h3 className="environment-head"><Trans>Changed since job {number}</Trans></h3>
      <Changes found={changes} absent={t`not installed`} />
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
        aria-label={t`Filter packages`}
        placeholder={plural(count, { one: "# package", other: "# packages" })}
        value={words}
        onChange={({ target }) => setWords(target.value)}
      />
      <ul tabIndex={0} aria-label={t`Installed packages`}>
        {shown.slice(0, MOST).map(([name, version]) => (
          <li key={name}>{name} <span className="soft num">{versionText(version)}</span></li>
        ))}
      </ul>
      {shown.length > MOST && (
        <p className="faint"><Trans>and {{ count: shown.length - MOST }} more: filter them</Trans></p>
      )}
      {environment.left_out > 0 && (
        <p className="faint"><Trans>{{ count: environment.left_out }} more are not recorded</Trans></p>
      )}
    </div>
  );
}
