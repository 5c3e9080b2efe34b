import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useMemo, useState } from "react";

import { useCode, useEnvironments } from "../api/compare";
import type { CodeFile, Job } from "../api/types";
import { type Difference, differences, isEnvironment, isSetting } from "../lib/differences";
import { packageDifferences } from "../lib/packages";
import type { Run } from "../lib/runs";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { CodeDiff } from "./CodeDiff";

const KINDS = [
  { key: "spec", label: t`Spec` }, { key: "code", label: t`Code` }, { key: "environment", label: t`Environment` },
] as const;
type Kind = (typeof KINDS)[number]["key"];
const SAME_FIELDS = t`All runs have the same variables and environment in their specs.`;
/** Runs that are named for one value. */
const NAMED = 12;

interface Props {
  jobs: readonly Job[];
  runs: readonly Run[];
}

/** What is not the same in all runs. */
export function Differences({ jobs, runs }: Props) {
  const [kind, setKind] = useState<Kind>("spec");
  const found = useMemo(() => differences(jobs.map(withParameters)), [jobs]);
  const shown = found.filter(({ path }) => (kind === "environment" ? isEnvironment : isSetting)(path));
  return (
    <Panel
      title={t`What differs`}
      tools={<Segments label={t`Differences of`} options={KINDS} value={kind} onChange={setKind} />}
    >
      {kind === "code"
        ? <CodeDifferences jobs={jobs} runs={runs} />
        : <Fields found={shown} runs={runs} none={kind === "spec" ? t`All runs have the same spec.` : SAME_FIELDS} />}
      {kind === "environment" && <PackageDifferences jobs={jobs} runs={runs} />}
    </Panel>
  );
}

function withParameters(job: Job): Record<string, unknown> {
  return job.parameters == null ? job.spec : { ...job.spec, parameters: job.parameters };
}

interface FieldsProps {
  found: readonly Difference[];
  runs: readonly Run[];
  /** Said where nothing differs. */
  none: string;
  /** Said of a run that lacks a field. */
  absent?: string;
}

function Fields({ found, runs, none, absent = t`not set` }: FieldsProps) {
  if (found.length === 0) return <p className="soft pad">{none}</p>;
  return (
    <dl className="differences">
      {found.map(({ path, values }) => (
        <div key={path}>
          <dt>{path}</dt>
          {values.map(({ text, of }) => (
            <dd key={text}>
              <code>{text === "" ? <span className="faint">{absent}</span> : text}</code>
              <Chips runs={of.flatMap((at) => runs[at] ?? [])} />
            </dd>
          ))}
        </div>
      ))}
    </dl>
  );
}

/** Python and packages that are not the same in all runs. */
function PackageDifferences({ jobs, runs }: Props) {
  const asked = useEnvironments(useMemo(() => jobs.map((job) => job.id), [jobs]));
  const error = asked.find((one) => one.error !== null)?.error;
  if (error !== undefined) return <Notice error={error} />;
  const found = asked.flatMap(({ data }) => (data === undefined ? [] : [data.environment]));
  if (found.length < jobs.length) return <p className="soft pad"><Trans>Reading…</Trans></p>;
  const unknown = found.filter((one) => one === null).length;
  return (
    <>
      <h3 className="environment-head"><Trans>Installed packages</Trans></h3>
      {unknown < jobs.length && (
        <Fields
          found={packageDifferences(found)}
          runs={runs}
          none={t`Python and packages are the same.`}
          absent={t`not installed`}
        />
      )}
      {unknown > 0 && (
        <p className="faint pad">
          <Plural value={unknown} one="They are not known of # run." other="They are not known of # runs." />
        </p>
      )}
    </>
  );
}

/** The runs that have a value, by number. */
function Chips({ runs }: { runs: readonly Run[] }) {
  return (
    <span className="run-chips">
      {runs.slice(0, NAMED).map(({ job, color }) => (
        <span key={job.id} title={job.name}><i style={{ background: color }} aria-hidden="true" />{job.number}</span>
      ))}
      {runs.length > NAMED && <span className="faint"><Trans>and {{ count: runs.length - NAMED }} more</Trans></span>}
    </span>
  );
}

/** The files of each run against those of the first. */
function CodeDifferences({ jobs, runs }: Props) {
  const codes = useCode(useMemo(() => jobs.map((job) => job.id), [jobs]));
  if (jobs.length < 2) {
    return <p className="soft pad"><Trans>Add a second run to see how their code differs.</Trans></p>;
  }
  const error = codes.find((code) => code.error !== null)?.error;
  if (error !== undefined) return <Notice error={error} />;
  const files = codes.flatMap((code) => (code.data === undefined ? [] : [code.data]));
  if (files.length < jobs.length) return <p className="soft pad"><Trans>Reading…</Trans></p>;
  return <CodePairs jobs={jobs} runs={runs} files={files} />;
}

function CodePairs({ jobs, runs, files }: Props & { files: readonly CodeFile[][] }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const [base = [], before] = [files[0], jobs[0]];
  const differing = runs.filter(({ index }) => !isSame(base, files[index] ?? []));
  const other = differing.find(({ job }) => job.id === chosen) ?? differing[0];
  if (before === undefined || other === undefined) {
    return (
      <p className="soft pad">
        {base.length === 0 ? t`No run was submitted with a snapshot.` : t`All runs have the same code.`}
      </p>
    );
  }
  const { number } = before;
  const choice = (
    <select
      aria-label={t`Run whose code is compared`}
      value={other.job.id}
      onChange={({ target }) => setChosen(target.value)}
    >
      {differing.map(({ job }) => <option key={job.id} value={job.id}>{job.number} {job.name}</option>)}
    </select>
  );
  return (
    <>
      <p className="pad compare-code">
        <Trans>Run {number} against {choice}</Trans>
        <span className="faint">
          <Trans>{{ differing: differing.length }} of {{ all: jobs.length }} runs have other code than {number}.</Trans>
        </span>
      </p>
      <CodeDiff
        before={{ job: before.id, files: base }}
        after={{ job: other.job.id, files: files[other.index] ?? [] }}
      />
    </>
  );
}

function isSame(one: readonly CodeFile[], other: readonly CodeFile[]): boolean {
  const known = new Map(one.map((file) => [file.path, file.sha256]));
  return one.length === other.length && other.every((file) => known.get(file.path) === file.sha256);
}
