import { useState } from "react";

import { useCreateUser, useTokens, useUsers } from "../api/people";
import type { User } from "../api/types";
import { TokensPanel } from "../account/TokensPanel";
import { BlockDialog } from "../people/BlockDialog";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";

/** Users for programs of one project, with their tokens. */
export function ServiceAccounts({ project }: { project: string }) {
  const users = useUsers();
  const tokens = useTokens(true);
  const [adding, setAdding] = useState(false);
  const [blocked, setBlocked] = useState<User | null>(null);
  const accounts = users.data?.filter((user) => user.project === project) ?? [];
  const tools = (
    <button type="button" className="button small" onClick={() => setAdding(true)}>New service account</button>
  );
  return (
    <>
      <Panel title="Service accounts" tools={tools}>
        <Notice error={users.error ?? tokens.error} />
        {accounts.length === 0 && (
          <p className="soft pad">
            For programs such as CI: they work in this project alone, sign in nowhere, and outlast people who leave.
          </p>
        )}
        <ul className="pad service-accounts">
          {accounts.map((user) => (
            <li key={user.id}>
              <b>{user.name}</b> {!user.active && <span className="badge">blocked</span>}
              <button
                type="button"
                className="button small ghost"
                aria-label={`${user.active ? "Block" : "Let in"} ${user.name}`}
                onClick={() => setBlocked(user)}
              >
                {user.active ? "Block" : "Let in"}
              </button>
            </li>
          ))}
        </ul>
      </Panel>
      {accounts.filter((user) => user.active).map((user) => (
        <TokensPanel
          key={user.id}
          title={`Tokens of ${user.name}`}
          tokens={tokens.data?.filter((token) => token.user === user.name)}
          user={user.name}
        />
      ))}
      {adding && <NewDialog project={project} onClose={() => setAdding(false)} />}
      {blocked !== null && <BlockDialog user={blocked} standing={undefined} onClose={() => setBlocked(null)} />}
    </>
  );
}

function NewDialog({ project, onClose }: { project: string; onClose: () => void }) {
  const [name, setName] = useState("");
  const create = useCreateUser();
  const confirm = () => create.mutate(
    { name: name.trim(), project, role: "member", admin: false, unix_user: null },
    { onSuccess: onClose },
  );
  return (
    <Dialog title={`New service account of ${project}`} confirm="Create" busy={create.isPending} onConfirm={confirm} onClose={onClose}>
      <Field label="Name" required maxLength={63} placeholder="ci" value={name} onChange={setName} />
      <Notice error={create.error} />
    </Dialog>
  );
}
