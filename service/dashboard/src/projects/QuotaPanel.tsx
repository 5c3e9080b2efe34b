import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useQuotas } from "../api/sharing";
import type { Quota } from "../api/types";
import { hours, number } from "../lib/format";
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
    <button type="button" className="button small" onClick={() => setEditing(true)}><Trans>Edit</Trans></button>
  );
  return (
    <Panel title={t`Quotas`} tools={tools}>
      <Notice error={quotas.error} />
      {quota !== undefined && (
        <dl className="policy">
          {rows(quota, one, many).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
          <div><dt><Trans>Storage</Trans></dt><dd><Storage quota={quota} /></dd></div>
        </dl>
      )}
      {editing && quota !== undefined && <QuotaDialog quota={quota} onClose={() => setEditing(false)} />}
    </Panel>
  );
}

function rows({ effective, standing }: Quota, one: string, many: string): [string, string][] {
  return [
    [t`Weight`, String(effective.weight ?? 1)],
    [t`${many} now`, of(number(standing?.gpus ?? 0), effective.max_gpus)],
    [t`${one}-hours in 7 days`, of(hours(standing?.gpu_hours ?? 0), effective.max_gpu_hours)],
    [t`Waiting jobs`, of(number(standing?.queued ?? 0), effective.max_queued)],
  ];
}

function of(used: string, most: number | null | undefined): string {
  if (most == null) return used;
  const total = number(most);
  return t`${used} of ${total}`;
}
