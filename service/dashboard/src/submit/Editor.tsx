import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";

import { useProjects } from "../api/people";
import { useSettings } from "../api/session";
import { type Draft, useDryRun, useSubmit, type Verdict } from "../api/submit";
import type { DryRun, Job } from "../api/types";
import { SCRATCH, type Start, StartChoice } from "../job/StartChoice";
import { SpecChanges } from "../job/SpecChanges";
import { maySubmit } from "../lib/rights";
import type { Path } from "../lib/schema";
import type { Complaint, SpecForm } from "../lib/specForm";
import { mergePatch, readSpec, type Spec, withField } from "../lib/specText";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useSettled } from "../ui/useSettled";
import { Form } from "./Form";
import { Outcome } from "./Outcome";
import { YamlBox } from "./YamlBox";

/** How long nothing is typed before it is checked. */
const SETTLE_MS = 400;

interface Props {
  form: SpecForm;
  /** The text that is begun with. */
  begun: string;
  /** The job that is run again. */
  origin: Job | null;
}

/** Form and YAML of one spec; the text is what is edited, and the form shows what it says. */
export function Editor({ form, begun, origin }: Props) {
  const [read, setRead] = useState(() => readSpec(begun));
  const [spec, setSpec] = useState<Spec>(read.spec ?? {});
  const [start, setStart] = useState<Start>(SCRATCH);
  const draft = useMemo(
    () => (read.spec === null ? null : draftOf(read.spec, begun, origin, start)),
    [read, begun, origin, start],
  );
  const settled = useSettled(draft, SETTLE_MS);
  const dry = useDryRun(settled);
  const verdict = settled === null ? null : dry.data ?? null;
  const { checked, complaints } = partsOf(verdict);
  const write = (text: string) => {
    const next = readSpec(text);
    setRead(next);
    if (next.spec !== null) setSpec(next.spec);
  };
  return (
    <div className="submit">
      <Panel title={t`Form`} className="submit-form">
        <fieldset className="spec-list pad" disabled={read.fault !== null} aria-label={t`Fields of the job`}>
          <Form
            form={form}
            spec={spec}
            complaints={complaints}
            projects={useProjectNames()}
            onChange={(path: Path, value) => write(withField(read.text, path, value))}
            onWork={(kind, before) => {
              const other = kind === "recipe" ? "command" : "recipe";
              write(withField(withField(read.text, [other], undefined), [kind], before ?? (kind === "recipe" ? {} : "")));
            }}
          />
        </fieldset>
      </Panel>
      <div className="submit-side">
        <Panel title="YAML"><div className="pad"><YamlBox read={read} onText={write} /></div></Panel>
        <Panel title={t`If it is submitted now`}>
          <div className="pad submit-end">
            <Notice error={dry.error} />
            <Outcome verdict={verdict} form={form} />
            {origin !== null && <StartChoice job={origin} chosen={start} onChoose={setStart} legend={t`It starts`} />}
            <Send draft={draft} wrong={verdict !== null && checked === null && settled === draft} />
          </div>
        </Panel>
        {origin !== null && checked !== null && <SpecChanges before={origin} after={checked.spec} />}
      </div>
    </div>
  );
}

const NONE: Complaint[] = [];

function partsOf(verdict: Verdict | null): { checked: DryRun | null; complaints: Complaint[] } {
  if (verdict === null) return { checked: null, complaints: NONE };
  return "checked" in verdict ? { checked: verdict.checked, complaints: NONE } : { checked: null, complaints: verdict.complaints };
}

function draftOf(spec: Spec, begun: string, origin: Job | null, start: Start): Draft {
  if (origin === null) return { spec };
  return { again: { job: origin.id, ...start, changes: mergePatch(readSpec(begun).spec ?? {}, spec) } };
}

/** Submits the draft, and goes to what it has become. */
function Send({ draft, wrong }: { draft: Draft | null; wrong: boolean }) {
  const navigate = useNavigate();
  const submit = useSubmit();
  // The page of what it has become may take a moment.
  const sent = submit.isPending || submit.isSuccess;
  const send = () => draft !== null && submit.mutate(draft, {
    onSuccess: (made) => {
      const number = String(made.number);
      if ("state" in made) void navigate({ to: "/jobs/$jobId", params: { jobId: number } });
      else void navigate({ to: "/sweeps/$sweepId", params: { sweepId: number } });
    },
  });
  return (
    <>
      <Notice error={submit.error} />
      <div className="submit-send">
        <button type="button" className="button primary wide" disabled={draft === null || wrong || sent} onClick={send}>
          <Trans>Submit the job</Trans>
        </button>
      </div>
    </>
  );
}

/** The projects that the viewer submits to. */
function useProjectNames(): string[] {
  const viewer = useSettings().data;
  return useProjects().data?.map(({ name }) => name).filter((name) => maySubmit(viewer, name)) ?? [];
}
