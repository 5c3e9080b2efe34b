import { useState } from "react";

import { useQuotas } from "../api/sharing";
import type { Quota } from "../api/types";
import { hours, percent } from "../lib/format";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useResource } from "../ui/useResource";
import { QuotaDialog } from "./QuotaDialog";

const KINDS = [{ kind: "user", title: "Users" }, { kind: "project", title: "Projects" }] as const;
export const EVERYBODY = "*";

/** How everybody stands against share and quotas. */
export function Shares({ admin }: { admin: boolean }) {
  const quotas = useQuotas();
  const { one, many } = useResource();
  const [edited, setEdited] = useState<Quota | null>(null);
  return (
    <Panel title="Shares and quotas" className="table-panel">
      <Notice error={quotas.error} />
      <p className="soft pad">
        Who has used less than their share comes first. The mark on the bar is the share; usage fades with time.
      </p>
      <table className="plain-table stacking shares">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col" className="num">Weight</th>
            <th scope="col">Used of share</th>
            <th scope="col" className="num">{many} now</th>
            <th scope="col" className="num">{one}-hours in 7 days</th>
            <th scope="col" className="num">Waiting</th>
            {admin && <th scope="col"><span className="hidden-words">Change</span></th>}
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
      <th scope="row">{name === EVERYBODY ? "default for everybody else" : name}</th>
      <td className="num" data-label="Weight">{effective.weight ?? 1}</td>
      <td className="share-cell">
        {standing !== null && <ShareBar used={standing.used} share={standing.share} />}
      </td>
      <td className="num" data-label={`${many} now`}><Of used={standing?.gpus} most={effective.max_gpus} exact /></td>
      <td className="num" data-label={`${one}-hours in 7 days`}>
        <Of used={standing?.gpu_hours} most={effective.max_gpu_hours} />
      </td>
      <td className="num" data-label="Waiting"><Of used={standing?.queued} most={effective.max_queued} exact /></td>
      {onEdit !== null && (
        <td className="num">
          <button
            type="button"
            className="button small"
            aria-label={`Edit quotas of ${quota.kind} ${name === EVERYBODY ? "everybody" : name}`}
            onClick={onEdit}
          >
            Edit
          </button>
        </td>
      )}
    </tr>
  );
}

function ShareBar({ used, share }: { used: number; share: number }) {
  const words = `used ${percent(used)} of a share of ${percent(share)}`;
  return (
    <div className="share">
      <div className="share-bar" role="img" aria-label={words} data-over={used > share || undefined}>
        <div style={{ width: `${used * 100}%` }} />
        <i style={{ left: `${share * 100}%` }} />
      </div>
      <span>{percent(used)} <span className="faint">of {percent(share)}</span></span>
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
  return (
    <span data-full={full || undefined} className="quota-of">
      {used !== undefined && (exact ? used.toLocaleString() : hours(used))}
      {most != null && <span className="faint">{used === undefined ? "up to" : " of"} {most.toLocaleString()}</span>}
      {used === undefined && most == null && <span className="faint">no limit</span>}
    </span>
  );
}
