import { t } from "@lingui/core/macro";

import { type Again, useCheckpoints, useOutputs } from "../api/jobs";
import type { Job } from "../api/types";
import { number } from "../lib/format";

/** What a job that is run again starts from. */
export type Start = Pick<Again, "from" | "carry">;

export const SCRATCH: Start = { from: null, carry: false };
const FILES: Start = { from: null, carry: true };
const LATEST: Start = { from: "latest", carry: false };

interface Props {
  job: Job;
  chosen: Start;
  legend: string;
  onChoose: (start: Start) => void;
}

/** From where a job starts again: only what the job has left is offered. */
export function StartChoice({ job, chosen, legend, onChoose }: Props) {
  const checkpoints = useCheckpoints(job);
  const left = useOutputs(job).data?.some((output) => output.root !== "output") ?? false;
  const latest = checkpoints.data?.reduce((most, one) => Math.max(most, one.step), -1) ?? -1;
  const choices = [
    { value: SCRATCH, label: t`From scratch` },
    ...(left ? [{ value: FILES, label: t`With the files that it has left` }] : []),
    ...(latest >= 0
      ? [{ value: LATEST, label: t`From the latest checkpoint (step ${{ step: number(latest) }})` }]
      : []),
  ];
  return (
    <fieldset className="choices">
      <legend className="soft">{legend}</legend>
      {choices.map(({ value, label }) => (
        <label key={label}>
          <input type="radio" name="from" checked={chosen === value} onChange={() => onChoose(value)} /> {label}
        </label>
      ))}
    </fieldset>
  );
}
