import { useState } from "react";

import { mayAdminister, useSettings } from "../api/session";
import { useTitle } from "../ui/useTitle";
import { AuditPanel } from "./AuditPanel";

/** What people have changed, and what was refused. */
export function AuditPage() {
  useTitle("Audit");
  const [now] = useState(() => Date.now());
  return (
    <>
      <h1 className="page-title">Audit</h1>
      {mayAdminister(useSettings().data)
        ? <AuditPanel now={now} />
        : <p className="soft">Administrators see here who has changed what, and what was refused.</p>}
    </>
  );
}
