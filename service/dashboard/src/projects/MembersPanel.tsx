import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useRemoveMember, useSetMember, useUsers } from "../api/people";
import type { Project, Role, User } from "../api/types";
import { labelOf, ROLES } from "../lib/people";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Select } from "../ui/Select";

/** Who is in a project, and as what; its administrators add, change and remove them. */
export function MembersPanel({ project, leads }: { project: Project; leads: boolean }) {
  const found = useUsers();
  const users = found.data ?? [];
  const [adding, setAdding] = useState(false);
  const [leaving, setLeaving] = useState<string | null>(null);
  const members = found.isPending ? [] : peopleOf(project, users);
  const others = users.filter(({ name, active, project: own }) => active && own === null && !(name in project.roles));
  const tools = leads && others.length > 0 && (
    <button type="button" className="button small" onClick={() => setAdding(true)}><Trans>Add a member</Trans></button>
  );
  return (
    <Panel title={t`Members`} tools={tools} className="table-panel">
      <Notice error={found.error} />
      {!found.isPending && members.length === 0 && <p className="soft pad"><Trans>Nobody is a member. Administrators may do everything in it anyway.</Trans></p>}
      {members.length > 0 && (
        <table className="plain-table stacking members">
          <thead>
            <tr>
              <th scope="col"><Trans>Name</Trans></th>
              <th scope="col"><Trans>Role here</Trans></th>
              {leads && <th scope="col"><span className="hidden-words"><Trans>Change</Trans></span></th>}
            </tr>
          </thead>
          <tbody>
            {members.map(([name, role]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td data-label={t`Role here`}>
                  {leads ? <RoleChoice project={project.name} user={name} role={role} /> : labelOf(ROLES, role)}
                </td>
                {leads && (
                  <td className="row-actions">
                    <button
                      type="button"
                      className="button small ghost"
                      aria-label={t`Remove ${name}`}
                      onClick={() => setLeaving(name)}
                    >
                      <Trans>Remove</Trans>
                    </button>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {adding && (
        <AddDialog project={project.name} names={others.map(({ name }) => name)} onClose={() => setAdding(false)} />
      )}
      {leaving !== null && <RemoveDialog project={project} user={leaving} onClose={() => setLeaving(null)} />}
    </Panel>
  );
}

/** The members but for service accounts, which the users alone tell. */
function peopleOf({ roles }: Project, users: readonly User[]): [string, Role][] {
  const accounts = new Set(users.filter((user) => user.project !== null).map((user) => user.name));
  return Object.entries(roles).filter(([name]) => !accounts.has(name));
}

/** The role of a member, each with its own change: another one does not end what is shown of it. */
function RoleChoice({ project, user, role }: { project: string; user: string; role: Role }) {
  const set = useSetMember();
  return (
    <>
      <Select
        bare
        label={t`Role of ${{ name: user }}`}
        options={ROLES}
        value={set.isPending ? set.variables.role : role}
        onChange={(next) => set.mutate({ project, user, role: next })}
      />
      <Notice error={set.error} />
    </>
  );
}

function AddDialog({ project, names, onClose }: { project: string; names: readonly string[]; onClose: () => void }) {
  const [user, setUser] = useState(names[0] ?? "");
  const [role, setRole] = useState<Role>("member");
  const set = useSetMember();
  return (
    <Dialog
      title={t`Add a member of ${project}`}
      confirm={t`Add`}
      busy={set.isPending}
      onConfirm={() => set.mutate({ project, user, role }, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Select label={t`User`} options={names.map((name) => ({ key: name, label: name }))} value={user} onChange={setUser} />
      <Select
        label={t`Role here`}
        options={ROLES.map(({ key, label, hint }) => ({ key, label: t`${label}: ${hint}` }))}
        value={role}
        onChange={setRole}
      />
      <Notice error={set.error} />
    </Dialog>
  );
}

function RemoveDialog({ project, user, onClose }: { project: Project; user: string; onClose: () => void }) {
  const remove = useRemoveMember();
  const { name } = project;
  return (
    <Dialog
      title={t`Remove ${user} from ${name}?`}
      confirm={t`Remove`}
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate({ project: name, user }, { onSuccess: onClose })}
      onClose={onClose}
    >
      <ul className="told">
        {project.visibility !== "everyone" && <li><Trans>{user} reads only their own jobs here from now on.</Trans></li>}
        {project.submitters === "members" && <li><Trans>{user} submits nothing more to it.</Trans></li>}
        <li><Trans>Jobs that wait or run go on.</Trans></li>
      </ul>
      <Notice error={remove.error} />
    </Dialog>
  );
}
