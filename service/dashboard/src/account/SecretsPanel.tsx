import { Link } from "@tanstack/react-router";
import { Fragment, useState } from "react";

import { useRemoveSecret, useSecrets } from "../api/people";
import { mayAdminister, useSettings } from "../api/session";
import type { Secret } from "../api/types";
import { maySubmitAnywhere } from "../lib/rights";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Time } from "../ui/Time";
import { SecretDialog } from "./SecretDialog";

/** Names of the viewer's secrets, or of a project's: no answer of the service has a value. */
export function SecretsPanel({ project }: { project: string | null }) {
  const secrets = useSecrets();
  const viewer = useSettings().data;
  const sets = project === null ? maySubmitAnywhere(viewer) : mayAdminister(viewer);
  const [edited, setEdited] = useState<Secret | "new" | null>(null);
  const [doomed, setDoomed] = useState<Secret | null>(null);
  const shown = secrets.data?.filter((secret) => secret.project === project);
  const tools = sets && (
    <button type="button" className="button small" onClick={() => setEdited("new")}>New secret</button>
  );
  return (
    <Panel title={project === null ? "Your secrets" : "Secrets"} tools={tools} className="table-panel">
      <Notice error={secrets.error} />
      <p className="soft pad">
        {project === null ? "Your jobs get" : "Jobs of the members get"} those that their spec names in{" "}
        <code>secrets:</code>, as variables. Values are shown to nobody.
      </p>
      {shown !== undefined && shown.length > 0 && (
        <table className="plain-table stacking">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Set by</th>
              <th scope="col">Changed</th>
              <th scope="col">Last used</th>
              {sets && <th scope="col"><span className="hidden-words">Change</span></th>}
            </tr>
          </thead>
          <tbody>
            {shown.map((secret) => (
              <SecretRow
                key={secret.name}
                secret={secret}
                {...(sets && { onReplace: () => setEdited(secret), onDelete: () => setDoomed(secret) })}
              />
            ))}
          </tbody>
        </table>
      )}
      {edited !== null && (
        <SecretDialog name={edited === "new" ? null : edited.name} project={project} onClose={() => setEdited(null)} />
      )}
      {doomed !== null && <DeleteDialog secret={doomed} onClose={() => setDoomed(null)} />}
    </Panel>
  );
}

interface RowProps {
  secret: Secret;
  onReplace?: () => void;
  onDelete?: () => void;
}

function SecretRow({ secret, onReplace, onDelete }: RowProps) {
  const { name, set_by: setter, changed_at: changed, used_at: used, used_by: jobs } = secret;
  return (
    <tr>
      <th scope="row"><code>{name}</code></th>
      <td data-label="Set by">{setter}</td>
      <td data-label="Changed"><Time at={changed} /></td>
      <td data-label="Last used">
        <Uses at={used} jobs={jobs} />
      </td>
      {onReplace !== undefined && (
        <td className="row-actions">
          <button type="button" className="button small ghost" aria-label={`Replace ${name}`} onClick={onReplace}>
            Replace
          </button>
          <button type="button" className="button small ghost" aria-label={`Delete ${name}`} onClick={onDelete}>
            Delete
          </button>
        </td>
      )}
    </tr>
  );
}

function DeleteDialog({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const remove = useRemoveSecret();
  return (
    <Dialog
      title={`Delete ${secret.name}?`}
      confirm="Delete for good"
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate(secret, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>Waiting jobs that name it will not start. What runs keeps the value that it has.</p>
      <Notice error={remove.error} />
    </Dialog>
  );
}

/** When a job was given the secret last, and the newest of those that were. */
function Uses({ at, jobs }: { at: string | null; jobs: readonly number[] }) {
  if (at === null) return <span className="faint">never</span>;
  const links = jobs.map((job, index) => (
    <Fragment key={job}>
      {index > 0 && ", "}
      <Link to="/jobs/$jobId" params={{ jobId: String(job) }}>{job}</Link>
    </Fragment>
  ));
  return <><Time at={at} /> by {links}</>;
}
