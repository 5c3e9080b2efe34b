import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useQuotas } from "../api/sharing";
import type { Quota } from "../api/types";
import { hours, number, percent } from "../lib/format";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useResource } from "../ui/useResource";
import { QuotaDialog } from "./QuotaDialog";

const KINDS = [{ kind: "user", title: t`Users` }, { kind: "project", title: t`Projects` }] as const;
export const EVERYBODY = "*";

/** How everybody stands against share and quotas. */
export function Shares({ admin }: { admin: boolean }) {
  const quotas = useQuotas();
  const { one, many } = useResource();
  const [edited, setEdited] = useState<Quota | null>(null);
  return (
    <Panel title={t`Shares and quotas`} className="table-panel">
      <Notice error={quotas.error} />
      <p className="soft pad">
        <Trans>
          Who has used less than their share comes first. The mark on the bar is the share; usage fades with time.
        </Trans>
        {!admin && <>{" "}<Trans>Of users you see yourself here: how others stand is shown to administrators.</Trans></>}
      </p>
      <table className="plain-table stacking shares">
        <thead>
          <tr>
            <th scope="col"><Trans>Name</Trans></th>
            <th scope="col" className="num"><Trans>Weight</Trans></th>
            <th scope="col"><Trans>Used of share</Trans></th>
            <th scope="col" className="num"><Trans>{many} now</Trans></th>
            <th scope="col" className="num"><Trans>{one}-hours in 7 days</Trans></th>
            <th scope="col" className="num"><Trans>Waiting</Trans></th>
            {admin && <th scope="col"><span className="hidden-words"><Trans>Change</Trans></span></th>}
          </tr>
        </thead>
        {KINDS.map(({ kind, title }) => (
          <tbody key={kind}>
            <tr className="group-head"><th scope="rowgroup" colSpan={admin ? 7 : 6}>{title}</th></tr>
            {inOrder(quotas.data ?? [], kind).map((quota) => (
              <Row key={quota.name} quota={quota} onEdit={admin ? () => setEdited(quota) : null} />
            ))}
          </tbody>
        ))}
      </table>
      {edited !== null && <QuotaDialog quota={edited} onClose={() => setEdited(null)} />}
    </Panel>
  );
}

/** Who uses most on top, everybody's default last. */
function inOrder(quotas: readonly Quota[], kind: Quota["kind"]): Quota[] {
  const used = (quota: Quota) => quota.standing?.used ?? -1;
  const some = quotas.filter((quota) => quota.kind === kind);
  return some.sort((a, b) => used(b) - used(a) || a.name.localeCompare(b.name));
}

function Row({ quota, onEdit }: { quota: Quota; onEdit: (() => void) | null }) {
  const { name, effective, standing } = quota;
  const { one, many } = useResource();
  return (
    <tr data-default={name === EVERYBODY || undefined}>
      <th scope="row">{name === EVERYBODY ? t`default for everybody else` : name}</th>
      <td className="num" data-label={t`Weight`}>{effective.weight ?? 1}</td>
      <td className="share-cell">
        {standing !== null && <ShareBar used={standing.used} share={standing.share} />}
      </td>
      <td className="num" data-label={t`${many} now`}><Of used={standing?.gpus} most={effective.max_gpus} exact /></td>
      <td className="num" data-label={t`${one}-hours in 7 days`}>
        <Of used={standing?.gpu_hours} most={effective.max_gpu_hours} />
      </td>
      <td className="num" data-label={t`Waiting`}><Of used={standing?.queued} most={effective.max_queued} exact /></td>
      {onEdit !== null && (
        <td className="num">
          <button
            type="button"
            className="button small"
            aria-label={editWords(quota)}
            onClick={onEdit}
          >
            <Trans>Edit</Trans>
          </button>
        </td>
      )}
    </tr>
  );
}

function editWords({ kind, name }: Quota): string {
  const whose = name === EVERYBODY ? t`everybody` : name;
  return kind === "user" ? t`Edit quotas of user ${whose}` : t`Edit quotas of project ${whose}`;
}

function ShareBar({ used, share }: { used: number; share: number }) {
  const [part, whole] = [percent(used), percent(share)];
  return (
    <div className="share">
      <div className="share-bar" role="img" aria-label={t`used ${part} of a share of ${whole}`} data-over={used > share || undefined}>
        <div style={{ width: `${used * 100}%` }} />
        <i style={{ left: `${share * 100}%` }} />
      </div>
      <span><Trans>{part} <span className="faint">of {whole}</span></Trans></span>
    </div>
  );
}

interface OfProps {
  used: number | undefined;
  most: number | null | undefined;
  /** A count, not hours. */
  exact?: boolean;
}

function Of({ used, most, exact = false }: OfProps) {
  const full = used !== undefined && most != null && used >= most;
  const part = used === undefined ? null : exact ? number(used) : hours(used);
  return <span data-full={full || undefined} className="quota-of"><Words part={part} whole={most == null ? null : number(most)} /></span>;
}

function Words({ part, whole }: { part: string | null; whole: string | null }) {
  if (whole === null) return part ?? <span className="faint"><Trans>no limit</Trans></span>;
  if (part === null) return <span className="faint"><Trans>up to {whole}</Trans></span>;
  return <Trans>{part}<span className="faint"> of {whole}</span></Trans>;
}
