import { Link } from "@tanstack/react-router";
import { useState } from "react";

import { useProjects } from "../api/people";
import { mayAdminister, useSettings } from "../api/session";
import { useQuotas } from "../api/sharing";
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
  useTitle("Projects");
  const projects = useProjects();
  const quotas = useQuotas().data ?? [];
  const admin = mayAdminister(useSettings().data);
  const { many } = useResource();
  const [making, setMaking] = useState(false);
  const tools = admin && (
    <button type="button" className="button small" onClick={() => setMaking(true)}>New project</button>
  );
  return (
    <>
      <h1 className="page-title">Projects</h1>
      <Panel title="All projects" tools={tools} className="table-panel">
        <Notice error={projects.error} />
        <table className="plain-table stacking">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Jobs are read by</th>
              <th scope="col">Who submits</th>
              <th scope="col">Members</th>
              <th scope="col" className="num">{many} now</th>
              <th scope="col" className="num">Storage</th>
            </tr>
          </thead>
          <tbody>
            {projects.data?.map(({ name, visibility, submitters, members }) => {
              const quota = quotas.find((one) => one.kind === "project" && one.name === name);
              return (
                <tr key={name}>
                  <th scope="row"><Link to="/projects/$project" params={{ project: name }}>{name}</Link></th>
                  <td data-label="Jobs are read by">{labelOf(READERS, visibility)}</td>
                  <td data-label="Who submits">{labelOf(SUBMITTERS, submitters)}</td>
                  <td data-label="Members" className="member-names">{shortened(members)}</td>
                  <td data-label={`${many} now`} className="num">{quota?.standing?.gpus ?? ""}</td>
                  <td data-label="Storage" className="num"><Storage quota={quota} /></td>
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
  return names.slice(0, SHOWN_MEMBERS).join(", ") + (more > 0 ? ` and ${more} more` : "") || "nobody";
}
