import { useState } from "react";

import { useRevokeToken, useRotateToken } from "../api/people";
import type { Token } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Select } from "../ui/Select";
import { ShownOnce } from "../ui/ShownOnce";

const GRACES = [
  { key: "now", label: "ends at once" },
  { key: "1h", label: "counts for another hour" },
  { key: "1d", label: "counts for another day" },
] as const;

export function RotateDialog({ token, onClose }: { token: Token; onClose: () => void }) {
  const [grace, setGrace] = useState<(typeof GRACES)[number]["key"]>("now");
  const rotate = useRotateToken();
  if (rotate.data !== undefined) {
    return (
      <ShownOnce title={`Token ${token.name}, anew`} text={rotate.data.secret} until={rotate.data.expires_at} onClose={onClose}>
        Put it in the place of the old one. It is not shown again.
      </ShownOnce>
    );
  }
  return (
    <Dialog
      title={`Rotate ${token.name}?`}
      confirm="Rotate"
      busy={rotate.isPending}
      onConfirm={() => rotate.mutate({ token: token.id, grace: grace === "now" ? null : grace })}
      onClose={onClose}
    >
      <p>A new token of the same name, rights and lifetime takes its place, and counts at once.</p>
      <Select label="The old one" options={GRACES} value={grace} onChange={setGrace} />
      <Notice error={rotate.error} />
    </Dialog>
  );
}

export function RevokeDialog({ token, onClose }: { token: Token; onClose: () => void }) {
  const revoke = useRevokeToken();
  const { session } = token;
  return (
    <Dialog
      title={session ? "Sign that browser out?" : `Revoke ${token.name}?`}
      confirm={session ? "Sign out" : "Revoke"}
      danger
      busy={revoke.isPending}
      onConfirm={() => revoke.mutate(token.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>{session ? "It may be the one that you use now." : "It ends at once, with the sessions that it has opened. Jobs go on."}</p>
      <Notice error={revoke.error} />
    </Dialog>
  );
}
