import { t } from "@lingui/core/macro";

import { useTokens } from "../api/people";
import { useSettings } from "../api/session";
import { list } from "../lib/format";
import { labelOf, ROLES } from "../lib/people";
import { Notice } from "../ui/Notice";
import { useTitle } from "../ui/useTitle";
import { SecretsPanel } from "./SecretsPanel";
import { TokensPanel } from "./TokensPanel";

/** What is the viewer's own: tokens, sessions and secrets. */
export function AccountPage() {
  useTitle(t`Your account`);
  const viewer = useSettings().data;
  const tokens = useTokens();
  if (viewer == null) return null;
  const { user, roles } = viewer;
  const role = labelOf(ROLES, user.role);
  const projects = Object.entries(roles).map(([project, own]) => inProject(labelOf(ROLES, own), project));
  return (
    <>
      <h1 className="page-title">{user.name}</h1>
      <p className="soft account-role">{list([t`${role} here`, ...projects])}</p>
      <div className="sharing">
        <Notice error={tokens.error} />
        <TokensPanel title={t`Your tokens and sessions`} tokens={tokens.data} user={null} />
        <SecretsPanel project={null} />
      </div>
    </>
  );
}

const inProject = (role: string, project: string) => t`${role} of ${project}`;
