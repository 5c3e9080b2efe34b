import { t } from "@lingui/core/macro";
import { useState } from "react";

import { useSetPolicy } from "../api/sharing";
import type { Policy } from "../api/types";
import { draftOf, policyChanges } from "../lib/policy";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { PolicyFields } from "./PolicyFields";

/** An administrator's hand on the policy. */
export function PolicyDialog({ policy, onClose }: { policy: Policy; onClose: () => void }) {
  const [begun] = useState(() => draftOf(policy));
  const [draft, setDraft] = useState(begun);
  const save = useSetPolicy();
  const confirm = () => save.mutate(policyChanges(begun, draft), { onSuccess: onClose });
  return (
    <Dialog title={t`Policy`} confirm={t`Save`} busy={save.isPending} onConfirm={confirm} onClose={onClose}>
      <PolicyFields draft={draft} onChange={setDraft} />
      <Notice error={save.error} />
    </Dialog>
  );
}
