import { useTokens } from "../api/people";
import { useSettings } from "../api/session";
import { Notice } from "../ui/Notice";
import { useTitle } from "../ui/useTitle";
import { SecretsPanel } from "./SecretsPanel";
import { TokensPanel } from "./TokensPanel";

/** What is the viewer's own: tokens, sessions and secrets. */
export function AccountPage() {
  useTitle("Your account");
  const viewer = useSettings().data;
  const tokens = useTokens();
  if (viewer == null) return null;
  const { user, roles } = viewer;
  const projects = Object.entries(roles).map(([project, role]) => `${role} of ${project}`);
  return (
    <>
      <h1 className="page-title">{user.name}</h1>
      <p className="soft account-role">{[`${user.role} here`, ...projects].join(", ")}</p>
      <div className="sharing">
        <Notice error={tokens.error} />
        <TokensPanel title="Your tokens and sessions" tokens={tokens.data} user={null} />
        <SecretsPanel project={null} />
      </div>
    </>
  );
}
