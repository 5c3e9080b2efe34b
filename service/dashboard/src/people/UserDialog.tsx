import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useChangeUser, useCreateUser } from "../api/people";
import type { Role, User } from "../api/types";
import { ROLES } from "../lib/people";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Select } from "../ui/Select";

/** A new user, or another role or UNIX account for one that there is. */
export function UserDialog({ user, onClose }: { user: User | null; onClose: () => void }) {
  const [texts, setTexts] = useState(() => textsOf(user));
  const { name, role, account } = texts;
  const known = user?.name ?? "";
  const [create, change] = [useCreateUser(), useChangeUser()];
  const confirm = () => {
    const unix = account.trim() || null;
    if (user === null) {
      create.mutate({ name: name.trim(), role, unix_user: unix, admin: false, project: null }, { onSuccess: onClose });
      return;
    }
    const changes = { ...(role !== user.role && { role }), ...(unix !== user.unix_user && { unix_user: unix }) };
    change.mutate({ name: user.name, changes }, { onSuccess: onClose });
  };
  return (
    <Dialog
      title={user === null ? t`Add a user` : t`Change ${known}`}
      confirm={user === null ? t`Add` : t`Save`}
      busy={create.isPending || change.isPending}
      onConfirm={confirm}
      onClose={onClose}
    >
      {user === null && (
        <Field
          label={t`Name`}
          required
          maxLength={63}
          value={name}
          onChange={(text) => setTexts({ ...texts, name: text })}
        />
      )}
      <Select
        label={t`Role`}
        options={ROLES.map(({ key, label, hint }) => ({ key, label: t`${label}: ${hint}` }))}
        value={role}
        onChange={(chosen) => setTexts({ ...texts, role: chosen })}
        hint={t`A role in a project counts there in its place.`}
      />
      {user?.role === "administrator" && role !== "administrator" && (
        <p className="faint"><Trans>Tokens and sessions of {known} with the scope admin end.</Trans></p>
      )}
      <Field
        label={t`UNIX account`}
        placeholder={t`none`}
        value={account}
        onChange={(text) => setTexts({ ...texts, account: text })}
        hint={t`As which their jobs run where the worker runs as root. Empty: none.`}
      />
      <Notice error={create.error ?? change.error} />
    </Dialog>
  );
}

function textsOf(user: User | null): { name: string; role: Role; account: string } {
  if (user === null) return { name: "", role: "member", account: "" };
  return { name: user.name, role: user.role, account: user.unix_user ?? "" };
}
