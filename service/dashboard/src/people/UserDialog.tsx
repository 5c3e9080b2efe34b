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
      title={user === null ? "Add a user" : `Change ${user.name}`}
      confirm={user === null ? "Add" : "Save"}
      busy={create.isPending || change.isPending}
      onConfirm={confirm}
      onClose={onClose}
    >
      {user === null && (
        <Field
          label="Name"
          required
          maxLength={63}
          value={name}
          onChange={(text) => setTexts({ ...texts, name: text })}
        />
      )}
      <Select
        label="Role"
        options={ROLES.map(({ key, label, hint }) => ({ key, label: `${label}: ${hint}` }))}
        value={role}
        onChange={(chosen) => setTexts({ ...texts, role: chosen })}
        hint="A role in a project counts there in its place."
      />
      {user?.role === "administrator" && role !== "administrator" && (
        <p className="faint">Tokens and sessions of {user.name} with the scope admin end.</p>
      )}
      <Field
        label="UNIX account"
        placeholder="none"
        value={account}
        onChange={(text) => setTexts({ ...texts, account: text })}
        hint="As which their jobs run where the worker runs as root. Empty: none."
      />
      <Notice error={create.error ?? change.error} />
    </Dialog>
  );
}

function textsOf(user: User | null): { name: string; role: Role; account: string } {
  if (user === null) return { name: "", role: "member", account: "" };
  return { name: user.name, role: user.role, account: user.unix_user ?? "" };
}
