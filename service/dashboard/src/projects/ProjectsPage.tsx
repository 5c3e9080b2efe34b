import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { useProjects } from "../api/people";
import { mayAdminister, useSettings } from "../api/session";
import { useQuotas } from "../api/sharing";
import { list, UNKNOWN } from "../lib/format";
import { labelOf, READERS, SUBMITTERS } from "../lib/people";
import { Storage } from "../people/UserRow";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { useResource } from "../ui/useResource";
import { useTitle } from "../ui/useTitle";
import { NewProjectDialog } from "./NewProjectDialog";

const SHOWN_MEMBERS = 6;

/** What jobs are submitted to, with who reads them and who submits. */
export function ProjectsPage() {
  useTitle(t`Projects`);
  const projects = useProjects();
  const quotas = useQuotas();
  const admin = mayAdminister(useSettings().data);
  const { many } = useResource();
  const [making, setMaking] = useState(false);
  const tools = admin && (
    <button type="button" className="button small" onClick={() => setMaking(true)}><Trans>New project</Trans></button>
  );
  return (
    <>
      <h1 className="page-title"><Trans>Projects</Trans></h1>
      <Panel title={t`All projects`} tools={tools} className="table-panel">
        <Notice error={projects.error ?? quotas.error} />
        <table className="plain-table stacking">
          <thead>
            <tr>
              <th scope="col"><Trans>Name</Trans></th>
              <th scope="col"><Trans>Jobs are read by</Trans></th>
              <th scope="col"><Trans>Who submits</Trans></th>
              <th scope="col"><Trans>Members</Trans></th>
              <th scope="col" className="num"><Trans>{many} now</Trans></th>
              <th scope="col" className="num"><Trans>Storage</Trans></th>
            </tr>
          </thead>
          <tbody>
            {projects.data?.map(({ name, visibility, submitters, members }) => {
              const quota = quotas.data?.find((one) => one.kind === "project" && one.name === name);
              return (
                <tr key={name}>
                  <th scope="row"><Link to="/projects/$project" params={{ project: name }}>{name}</Link></th>
                  <td data-label={t`Jobs are read by`}>{labelOf(READERS, visibility)}</td>
                  <td data-label={t`Who submits`}>{labelOf(SUBMITTERS, submitters)}</td>
                  <td data-label={t`Members`} className="member-names">{shortened(members)}</td>
                  <td data-label={t`${many} now`} className="num">{quota?.standing?.gpus ?? UNKNOWN}</td>
                  <td data-label={t`Storage`} className="num"><Storage quota={quota} /></td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Panel>
      {making && <NewProjectDialog onClose={() => setMaking(false)} />}
    </>
  );
}

function shortened(names: readonly string[]): string {
  const more = names.length - SHOWN_MEMBERS;
  const shown = list(names.slice(0, SHOWN_MEMBERS));
  if (more > 0) return t`${shown} and ${more} more`;
  return shown || t`nobody`;
}
