import { t } from "@lingui/core/macro";
import { useState } from "react";

import { useCreateToken } from "../api/people";
import { useSettings } from "../api/session";
import { LIFETIMES } from "../lib/people";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Select } from "../ui/Select";
import { ShownOnce } from "../ui/ShownOnce";

const SCOPES = [
  { key: "submit", label: t`submit: run jobs, and read` },
  { key: "read", label: t`read: see, change nothing` },
  { key: "admin", label: t`admin: everything that you may` },
] as const;
type Scope = (typeof SCOPES)[number]["key"];

/** A token for the viewer, or for a service account, that may no more than the session in use. */
export function NewTokenDialog({ user, onClose }: { user: string | null; onClose: () => void }) {
  const has = useSettings().data?.scopes ?? [];
  const offered = SCOPES.filter(({ key }) => has.includes(key) && (user === null || key !== "admin"));
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>(offered[0]?.key ?? "read");
  const [lifetime, setLifetime] = useState<(typeof LIFETIMES)[number]["key"]>("90d");
  const create = useCreateToken();
  if (create.data !== undefined) {
    const { name: made, secret, expires_at: until } = create.data;
    return (
      <ShownOnce title={t`Token ${made}`} text={secret} until={until} onClose={onClose}>
        {t`Keep it where only its program reads it. It is not shown again.`}
      </ShownOnce>
    );
  }
  const confirm = () => create.mutate({
    name: name.trim(),
    scopes: [scope],
    user,
    node: null,
    expires_in: lifetime === "never" ? null : lifetime,
  });
  return (
    <Dialog
      title={user === null ? t`New token` : t`New token for ${user}`}
      confirm={t`Make it`}
      busy={create.isPending}
      onConfirm={confirm}
      onClose={onClose}
    >
      <Field label={t`Name`} required maxLength={100} placeholder="laptop" value={name} onChange={setName} hint={t`What it is for.`} />
      <Select label={t`It may`} options={offered} value={scope} onChange={setScope} />
      <Select
        label={t`It counts for`}
        options={LIFETIMES}
        value={lifetime}
        onChange={setLifetime}
        hint={t`At most as long as what you have signed in with.`}
      />
      <Notice error={create.error} />
    </Dialog>
  );
}
