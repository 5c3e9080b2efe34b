import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { usePolicy } from "../api/sharing";
import { ORDERS, SPANS, spanWords, SWITCHES } from "../lib/policy";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { PolicyDialog } from "./PolicyDialog";
import { WhatIfDialog } from "./WhatIfDialog";

/** What the scheduler follows. */
export function PolicyPanel({ admin }: { admin: boolean }) {
  const found = usePolicy();
  const [open, setOpen] = useState<"edit" | "what-if" | null>(null);
  const policy = found.data;
  const tools = admin && policy !== undefined && (
    <>
      <button type="button" className="button small" onClick={() => setOpen("what-if")}><Trans>What if</Trans></button>
      <button type="button" className="button small" onClick={() => setOpen("edit")}><Trans>Edit</Trans></button>
    </>
  );
  return (
    <Panel title={t`Policy`} tools={tools}>
      <Notice error={found.error} />
      {policy !== undefined && (
        <dl className="policy">
          <div title={t`Who comes first`}>
            <dt><Trans>Order</Trans></dt>
            <dd>{ORDERS.find(({ key }) => key === policy.order)?.label ?? policy.order}</dd>
          </div>
          {SWITCHES.map(({ key, label, hint }) => (
            <div key={key} title={hint}><dt>{label}</dt><dd>{policy[key] ? t`on` : t`off`}</dd></div>
          ))}
          {SPANS.map(({ key, label, hint }) => (
            <div key={key} title={hint}><dt>{label}</dt><dd>{spanWords(policy[key])}</dd></div>
          ))}
        </dl>
      )}
      {open === "edit" && policy !== undefined && <PolicyDialog policy={policy} onClose={() => setOpen(null)} />}
      {open === "what-if" && policy !== undefined && <WhatIfDialog policy={policy} onClose={() => setOpen(null)} />}
    </Panel>
  );
}
