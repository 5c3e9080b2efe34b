import "../styles/submit.css";

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { stringify } from "yaml";

import { useJob } from "../api/jobs";
import { useSettings } from "../api/session";
import { useSchemas } from "../api/submit";
import type { Job } from "../api/types";
import { maySubmitAnywhere } from "../lib/rights";
import { defaultAt, type Schemas, unitAt } from "../lib/schema";
import { specForm } from "../lib/specForm";
import { written } from "../lib/specText";
import { Notice } from "../ui/Notice";
import { useTitle } from "../ui/useTitle";
import { Editor } from "./Editor";
import { specWords } from "./words";

const FIRST = stringify({ name: "train", command: "python train.py", resources: { gpus: 1 } });

/** A new job, or one of before with changes: its spec as a form and as YAML, checked as it is written. */
export function SubmitPage() {
  const { from } = useSearch({ from: "/submit" });
  const title = from === undefined ? t`New job` : t`Rerun job ${from} with edits`;
  useTitle(title);
  const viewer = useSettings().data;
  const schemas = useSchemas();
  return (
    <>
      <header className="page-title">
        <h1>{title}</h1>
        <p className="soft">
          {from === undefined
            ? <NoFolder />
            : <Trans>The new job starts from the code that this one was submitted with.</Trans>}
        </p>
      </header>
      <Notice error={schemas.error} />
      {maySubmitAnywhere(viewer)
        ? schemas.data !== undefined && <Start from={from} schemas={schemas.data} />
        : <p className="notice"><Trans>You may look at jobs, but submit none: ask an administrator for the role of a member.</Trans></p>}
    </>
  );
}

function NoFolder() {
  return (
    <Trans>
      A browser uploads no folder: name one on the node as <code>live</code> (below Code and environment), rerun a job
      with edits, which keeps its code, take the built-in trainer, or run <code>yard submit</code> where the code is.
    </Trans>
  );
}

function Start({ from, schemas }: { from: number | string | undefined; schemas: Schemas }) {
  return from === undefined
    ? <WithSchemas schemas={schemas} origin={null} />
    : <Again from={String(from)} schemas={schemas} />;
}

function Again({ from, schemas }: { from: string; schemas: Schemas }) {
  const job = useJob(from);
  if (job.data === undefined) return <Notice error={job.error} />;
  return <WithSchemas key={job.data.id} schemas={schemas} origin={job.data} />;
}

function WithSchemas({ schemas, origin }: { schemas: Schemas; origin: Job | null }) {
  const schema = schemas.JobSpec;
  const form = useMemo(() => schema && specForm(schema, schemas, specWords), [schema, schemas]);
  if (schema === undefined || form == null) {
    return (
      <p className="notice">
        <Trans>The form is older than the service: <Link to="/submit" reloadDocument>load it anew</Link>.</Trans>
      </p>
    );
  }
  const text = origin === null
    ? FIRST
    : stringify(written(origin.spec, (path) => ({
        usual: defaultAt(schema, schemas, path), unit: unitAt(schema, schemas, path),
      })), { lineWidth: 0 });
  return <Editor form={form} begun={text} origin={origin} />;
}
