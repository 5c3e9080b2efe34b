import { useState } from "react";

import { useQuotas } from "../api/sharing";
import type { Quota } from "../api/types";
import { hours } from "../lib/format";
import { Storage } from "../people/UserRow";
import { QuotaDialog } from "../sharing/QuotaDialog";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useResource } from "../ui/useResource";

/** What the project has now, and may have; administrators change that. */
export function QuotaPanel({ project, admin }: { project: string; admin: boolean }) {
  const quotas = useQuotas();
  const { one, many } = useResource();
  const [editing, setEditing] = useState(false);
  const quota = quotas.data?.find((each) => each.kind === "project" && each.name === project);
  const tools = admin && quota !== undefined && (
    <button type="button" className="button small" onClick={() => setEditing(true)}>Edit</button>
  );
  return (
    <Panel title="Quotas" tools={tools}>
      <Notice error={quotas.error} />
      {quota !== undefined && (
        <dl className="policy">
          {rows(quota, one, many).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
          <div><dt>Storage</dt><dd><Storage quota={quota} /></dd></div>
        </dl>
      )}
      {editing && quota !== undefined && <QuotaDialog quota={quota} onClose={() => setEditing(false)} />}
    </Panel>
  );
}

function rows({ effective, standing }: Quota, one: string, many: string): [string, string][] {
  return [
    ["Weight", String(effective.weight ?? 1)],
    [`${many} now`, of((standing?.gpus ?? 0).toLocaleString(), effective.max_gpus)],
    [`${one}-hours in 7 days`, of(hours(standing?.gpu_hours ?? 0), effective.max_gpu_hours)],
    ["Waiting jobs", of((standing?.queued ?? 0).toLocaleString(), effective.max_queued)],
  ];
}

function of(used: string, most: number | null | undefined): string {
  return most == null ? used : `${used} of ${most.toLocaleString()}`;
}
