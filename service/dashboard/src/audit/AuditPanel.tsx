import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useAudit } from "../api/audit";
import { type AuditFilters, auditTable } from "../lib/audit";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";
import { useSettled } from "../ui/useSettled";
import { AuditTable } from "./AuditTable";

const RESULTS = [
  { key: "all", label: t`All` },
  { key: "done", label: t`Changes` },
  { key: "refused", label: t`Refused` },
] as const;
const DAYS = [{ key: "1", label: t`Day` }, { key: "7", label: t`Week` }, { key: "all", label: t`Always` }] as const;
const START: AuditFilters = { user: "", action: "", result: "all", days: 7 };
const TYPED_MS = 300;

export function AuditPanel({ now }: { now: number }) {
  const [filters, setFilters] = useState(START);
  const settled = useSettled(filters, TYPED_MS) ?? START;
  const found = useAudit(settled);
  const set = (changes: Partial<AuditFilters>) => setFilters({ ...filters, ...changes });
  const entries = found.data?.pages.flatMap((page) => page.items);
  const tools = (
    <>
      <Segments label={t`Result`} options={RESULTS} value={filters.result} onChange={(result) => set({ result })} />
      <Segments
        label={t`Time`}
        options={DAYS}
        value={filters.days === null ? "all" : filters.days === 1 ? "1" : "7"}
        onChange={(days) => set({ days: days === "all" ? null : Number(days) })}
      />
      <a className="button small" href={auditTable(filters, now)} download="audit.csv">CSV</a>
    </>
  );
  return (
    <Panel title={t`Changes and refusals`} tools={tools} className="table-panel">
      <div className="audit-filters">
        <Field label={t`User`} value={filters.user} placeholder={t`a name`} onChange={(user) => set({ user })} />
        <Field label={t`Action`} value={filters.action} placeholder="job.cancel" onChange={(action) => set({ action })} />
      </div>
      <Notice error={found.error} />
      {entries?.length === 0 && <p className="soft pad"><Trans>Nothing that fits was changed or refused.</Trans></p>}
      {entries !== undefined && entries.length > 0 && <AuditTable entries={entries} />}
      {found.hasNextPage && (
        <div className="pad">
          <button
            type="button"
            className="button"
            disabled={found.isFetchingNextPage}
            onClick={() => void found.fetchNextPage()}
          >
            <Trans>Older entries</Trans>
          </button>
        </div>
      )}
    </Panel>
  );
}
