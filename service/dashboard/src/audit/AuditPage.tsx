import "../styles/audit.css";

import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { mayAdminister, useSettings } from "../api/session";
import { useTitle } from "../ui/useTitle";
import { AuditPanel } from "./AuditPanel";

/** What people have changed, and what was refused. */
export function AuditPage() {
  useTitle(t`Audit`);
  const [now] = useState(() => Date.now());
  return (
    <>
      <h1 className="page-title"><Trans>Audit</Trans></h1>
      {mayAdminister(useSettings().data)
        ? <AuditPanel now={now} />
        : <p className="soft"><Trans>Administrators see here who has changed what, and what was refused.</Trans></p>}
    </>
  );
}
