import { Trans } from "@lingui/react/macro";
import { useParams } from "@tanstack/react-router";
import { Fragment } from "react";

import { useProjects } from "../api/people";
import { mayAdminister, useSettings } from "../api/session";
import { SecretsPanel } from "../account/SecretsPanel";
import { mayAdministerProject } from "../lib/rights";
import { Notice } from "../ui/Notice";
import { useTitle } from "../ui/useTitle";
import { AccessPanel } from "./AccessPanel";
import { MembersPanel } from "./MembersPanel";
import { QuotaPanel } from "./QuotaPanel";
import { ServiceAccounts } from "./ServiceAccounts";

/** One project: who is in it, who reads and submits, and what it may have. */
export function ProjectPage() {
  const { project: name } = useParams({ from: "/projects/$project" });
  useTitle(name);
  const projects = useProjects();
  const viewer = useSettings().data;
  const project = projects.data?.find((one) => one.name === name);
  const leads = mayAdministerProject(viewer, name);
  const admin = mayAdminister(viewer);
  const inside = admin || viewer?.roles[name] !== undefined;
  if (project === undefined) {
    return (
      <>
        <h1 className="page-title">{name}</h1>
        <Notice error={projects.error} />
        {projects.data !== undefined && <p className="soft"><Trans>There is no such project.</Trans></p>}
      </>
    );
  }
  return (
    // A dialog that is open stays with its project.
    <Fragment key={name}>
      <h1 className="page-title">{name}</h1>
      <div className="sharing">
        <div className="sharing-pair">
          <AccessPanel project={project} leads={leads} />
          <QuotaPanel project={name} admin={admin} />
        </div>
        <MembersPanel project={project} leads={leads} />
        {inside && <SecretsPanel project={name} />}
        {admin && <ServiceAccounts project={name} />}
      </div>
    </Fragment>
  );
}
