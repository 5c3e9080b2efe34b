import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useUsers } from "../api/people";
import { useSettings } from "../api/session";
import { useQuotas } from "../api/sharing";
import type { Quota, User } from "../api/types";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useResource } from "../ui/useResource";
import { BlockDialog } from "./BlockDialog";
import { LinkDialog } from "./LinkDialog";
import { UserDialog } from "./UserDialog";
import { UserRow, type UserTask } from "./UserRow";

interface Task {
  /** Null: a user who is added. */
  user: User | null;
  task: UserTask;
}

/** Everybody, with what they hold, and the administrator's hand on it. */
export function UsersPanel() {
  const users = useUsers();
  const quotas = useQuotas();
  const viewer = useSettings().data?.user.name;
  const { many } = useResource();
  const [task, setTask] = useState<Task | null>(null);
  const quotaOf = (name: string) => quotas.data?.find((quota) => quota.kind === "user" && quota.name === name);
  const people = users.data?.filter((user) => user.project === null) ?? [];
  const tools = (
    <button type="button" className="button small" onClick={() => setTask({ user: null, task: "change" })}>
      <Trans>Add a user</Trans>
    </button>
  );
  return (
    <Panel title={t`Users`} tools={tools} className="table-panel">
      <Notice error={users.error ?? quotas.error} />
      <table className="plain-table stacking people">
        <thead>
          <tr>
            <th scope="col"><Trans>Name</Trans></th>
            <th scope="col"><Trans>Role</Trans></th>
            <th scope="col"><Trans>UNIX account</Trans></th>
            <th scope="col"><Trans>Last seen</Trans></th>
            <th scope="col" className="num"><Trans>{many} now</Trans></th>
            <th scope="col" className="num"><Trans>Waiting</Trans></th>
            <th scope="col" className="num"><Trans>Storage</Trans></th>
            <th scope="col"><span className="hidden-words"><Trans>Change</Trans></span></th>
          </tr>
        </thead>
        <tbody>
          {people.toSorted((a, b) => Number(b.active) - Number(a.active)).map((user) => (
            <UserRow
              key={user.id}
              user={user}
              quota={quotaOf(user.name)}
              own={user.name === viewer}
              onTask={(chosen) => setTask({ user, task: chosen })}
            />
          ))}
        </tbody>
      </table>
      {task !== null && <TaskDialog {...task} quota={quotaOf(task.user?.name ?? "")} onClose={() => setTask(null)} />}
    </Panel>
  );
}

function TaskDialog({ user, task, quota, onClose }: Task & { quota: Quota | undefined; onClose: () => void }) {
  if (user === null || task === "change") return <UserDialog user={user} onClose={onClose} />;
  if (task === "link") return <LinkDialog user={user} onClose={onClose} />;
  return <BlockDialog user={user} standing={quota?.standing} onClose={onClose} />;
}
