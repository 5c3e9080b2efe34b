import { useState } from "react";

import { useRemoveMember, useSetMember, useUsers } from "../api/people";
import type { Project, Role } from "../api/types";
import { ROLES } from "../lib/people";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Select } from "../ui/Select";

/** Who is in a project, and as what; its administrators add, change and remove them. */
export function MembersPanel({ project, leads }: { project: Project; leads: boolean }) {
  const users = useUsers().data ?? [];
  const set = useSetMember();
  const [adding, setAdding] = useState(false);
  const [leaving, setLeaving] = useState<string | null>(null);
  const accounts = new Set(users.filter((user) => user.project !== null).map((user) => user.name));
  const members = Object.entries(project.roles).filter(([name]) => !accounts.has(name));
  const others = users.filter(({ name, active, project: own }) => active && own === null && !(name in project.roles));
  const tools = leads && others.length > 0 && (
    <button type="button" className="button small" onClick={() => setAdding(true)}>Add a member</button>
  );
  return (
    <Panel title="Members" tools={tools} className="table-panel">
      <Notice error={set.error} />
      {members.length === 0 && <p className="soft pad">Nobody is a member. Administrators may do everything in it anyway.</p>}
      {members.length > 0 && (
        <table className="plain-table stacking members">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Role here</th>
              {leads && <th scope="col"><span className="hidden-words">Change</span></th>}
            </tr>
          </thead>
          <tbody>
            {members.map(([name, role]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td data-label="Role here">
                  {leads && (
                    <Select
                      bare
                      label={`Role of ${name}`}
                      options={ROLES}
                      value={role}
                      onChange={(chosen) => set.mutate({ project: project.name, user: name, role: chosen })}
                    />
                  )}
                  {!leads && role}
                </td>
                {leads && (
                  <td className="row-actions">
                    <button
                      type="button"
                      className="button small ghost"
                      aria-label={`Remove ${name}`}
                      onClick={() => setLeaving(name)}
                    >
                      Remove
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

function AddDialog({ project, names, onClose }: { project: string; names: readonly string[]; onClose: () => void }) {
  const [user, setUser] = useState(names[0] ?? "");
  const [role, setRole] = useState<Role>("member");
  const set = useSetMember();
  return (
    <Dialog
      title={`Add a member of ${project}`}
      confirm="Add"
      busy={set.isPending}
      onConfirm={() => set.mutate({ project, user, role }, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Select label="User" options={names.map((name) => ({ key: name, label: name }))} value={user} onChange={setUser} />
      <Select
        label="Role here"
        options={ROLES.map(({ key, label, hint }) => ({ key, label: `${label}: ${hint}` }))}
        value={role}
        onChange={setRole}
      />
      <Notice error={set.error} />
    </Dialog>
  );
}

function RemoveDialog({ project, user, onClose }: { project: Project; user: string; onClose: () => void }) {
  const remove = useRemoveMember();
  return (
    <Dialog
      title={`Remove ${user} from ${project.name}?`}
      confirm="Remove"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate({ project: project.name, user }, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>
        {project.visibility === "everyone" ? "" : `${user} reads only their own jobs here from now on. `}
        {project.submitters === "members" ? `${user} submits nothing more to it. ` : ""}
        Jobs that wait or run go on.
      </p>
      <Notice error={remove.error} />
    </Dialog>
  );
}
