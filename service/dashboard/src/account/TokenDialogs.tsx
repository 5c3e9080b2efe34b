import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useRevokeToken, useRotateToken } from "../api/people";
import type { Token } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Select } from "../ui/Select";
import { ShownOnce } from "../ui/ShownOnce";

const GRACES = [
  { key: "now", label: t`ends at once` },
  { key: "1h", label: t`counts for another hour` },
  { key: "1d", label: t`counts for another day` },
] as const;

export function RotateDialog({ token, onClose }: { token: Token; onClose: () => void }) {
  const [grace, setGrace] = useState<(typeof GRACES)[number]["key"]>("now");
  const rotate = useRotateToken();
  const { name } = token;
  if (rotate.data !== undefined) {
    return (
      <ShownOnce title={t`Token ${name}, anew`} text={rotate.data.secret} until={rotate.data.expires_at} onClose={onClose}>
        {t`Put it in the place of the old one. It is not shown again.`}
      </ShownOnce>
    );
  }
  return (
    <Dialog
      title={t`Rotate ${name}?`}
      confirm={t`Rotate`}
      busy={rotate.isPending}
      onConfirm={() => rotate.mutate({ token: token.id, grace: grace === "now" ? null : grace })}
      onClose={onClose}
    >
      <p><Trans>A new token of the same name, rights and lifetime takes its place, and counts at once.</Trans></p>
      <Select label={t`The old one`} options={GRACES} value={grace} onChange={setGrace} />
      <Notice error={rotate.error} />
    </Dialog>
  );
}

export function RevokeDialog({ token, onClose }: { token: Token; onClose: () => void }) {
  const revoke = useRevokeToken();
  const { name, session } = token;
  return (
    <Dialog
      title={session ? t`Sign that browser out?` : t`Revoke ${name}?`}
      confirm={session ? t`Sign out` : t`Revoke`}
      danger
      busy={revoke.isPending}
      onConfirm={() => revoke.mutate(token.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>
        {session
          ? <Trans>It may be the one that you use now.</Trans>
          : <Trans>It ends at once, with the sessions that it has opened. Jobs go on.</Trans>}
      </p>
      <Notice error={revoke.error} />
    </Dialog>
  );
}
