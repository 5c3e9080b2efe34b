import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
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
    <button type="button" className="button small" onClick={() => setEdited("new")}><Trans>New secret</Trans></button>
  );
  return (
    <Panel title={project === null ? t`Your secrets` : t`Secrets`} tools={tools} className="table-panel">
      <Notice error={secrets.error} />
      <p className="soft pad">
        {project === null
          ? (
              <Trans>
                Your jobs get those that their spec names in <code>secrets:</code>, as variables. Values are shown to
                nobody.
              </Trans>
            )
          : (
              <Trans>
                Jobs of the members get those that their spec names in <code>secrets:</code>, as variables. Values are
                shown to nobody.
              </Trans>
            )}
      </p>
      {shown !== undefined && shown.length > 0 && (
        <table className="plain-table stacking">
          <thead>
            <tr>
              <th scope="col"><Trans>Name</Trans></th>
              <th scope="col"><Trans>Set by</Trans></th>
              <th scope="col"><Trans>Changed</Trans></th>
              <th scope="col"><Trans>Last used</Trans></th>
              {sets && <th scope="col"><span className="hidden-words"><Trans>Change</Trans></span></th>}
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
      <td data-label={t`Set by`}>{setter}</td>
      <td data-label={t`Changed`}><Time at={changed} /></td>
      <td data-label={t`Last used`}>
        <Uses at={used} jobs={jobs} />
      </td>
      {onReplace !== undefined && (
        <td className="row-actions">
          <button type="button" className="button small ghost" aria-label={t`Replace ${name}`} onClick={onReplace}>
            <Trans>Replace</Trans>
          </button>
          <button type="button" className="button small ghost" aria-label={t`Delete ${name}`} onClick={onDelete}>
            <Trans>Delete</Trans>
          </button>
        </td>
      )}
    </tr>
  );
}

function DeleteDialog({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const remove = useRemoveSecret();
  const { name } = secret;
  return (
    <Dialog
      title={t`Delete ${name}?`}
      confirm={t`Delete for good`}
      danger
      busy={remove.isPending}
      onConfirm={() => remove.mutate(secret, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p><Trans>Waiting jobs that name it will not start. What runs keeps the value that it has.</Trans></p>
      <Notice error={remove.error} />
    </Dialog>
  );
}

/** When a job was given the secret last, and the newest of those that were. */
function Uses({ at, jobs }: { at: string | null; jobs: readonly number[] }) {
  if (at === null) return <span className="faint"><Trans>never</Trans></span>;
  const links = jobs.map((job, index) => (
    <Fragment key={job}>
      {index > 0 && ", "}
      <Link to="/jobs/$jobId" params={{ jobId: String(job) }}>{job}</Link>
    </Fragment>
  ));
  return <Trans><Time at={at} /> by {links}</Trans>;
}
