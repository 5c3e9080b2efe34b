import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useCreateUser, useTokens, useUsers } from "../api/people";
import { useQuotas } from "../api/sharing";
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
  const quotas = useQuotas();
  const [adding, setAdding] = useState(false);
  const [blocked, setBlocked] = useState<User | null>(null);
  const accounts = users.data?.filter((user) => user.project === project) ?? [];
  const tools = (
    <button type="button" className="button small" onClick={() => setAdding(true)}><Trans>New service account</Trans></button>
  );
  return (
    <>
      <Panel title={t`Service accounts`} tools={tools}>
        <Notice error={users.error ?? tokens.error ?? quotas.error} />
        {accounts.length === 0 && (
          <p className="soft pad">
            <Trans>
              For programs such as CI: they work in this project alone, sign in nowhere, and outlast people who leave.
            </Trans>
          </p>
        )}
        <ul className="pad service-accounts">
          {accounts.map((user) => <Account key={user.id} user={user} onBlock={() => setBlocked(user)} />)}
        </ul>
      </Panel>
      {accounts.filter((user) => user.active).map((user) => (
        <TokensPanel
          key={user.id}
          title={tokensOf(user.name)}
          tokens={tokens.data?.filter((token) => token.user === user.name)}
          user={user.name}
        />
      ))}
      {adding && <NewDialog project={project} onClose={() => setAdding(false)} />}
      {blocked !== null && (
        <BlockDialog
          user={blocked}
          standing={quotas.data?.find(({ kind, name }) => kind === "user" && name === blocked.name)?.standing}
          onClose={() => setBlocked(null)}
        />
      )}
    </>
  );
}

const tokensOf = (name: string) => t`Tokens of ${name}`;

function Account({ user: { name, active }, onBlock }: { user: User; onBlock: () => void }) {
  return (
    <li>
      <b>{name}</b> {!active && <span className="badge"><Trans context="user">blocked</Trans></span>}
      <button
        type="button"
        className="button small ghost"
        aria-label={active ? t`Block ${name}` : t`Let in ${name}`}
        onClick={onBlock}
      >
        {active ? <Trans>Block</Trans> : <Trans>Let in</Trans>}
      </button>
    </li>
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
    <Dialog title={t`New service account of ${project}`} confirm={t`Create`} busy={create.isPending} onConfirm={confirm} onClose={onClose}>
      <Field label={t`Name`} required maxLength={63} placeholder="ci" value={name} onChange={setName} />
      <Notice error={create.error} />
    </Dialog>
  );
}
