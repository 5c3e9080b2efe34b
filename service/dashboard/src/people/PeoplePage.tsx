import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { mayAdminister, useSettings } from "../api/session";
import { useTitle } from "../ui/useTitle";
import { UsersPanel } from "./UsersPanel";

/** Who may use the box, and what they hold. */
export function PeoplePage() {
  useTitle(t`People`);
  return (
    <>
      <h1 className="page-title"><Trans>People</Trans></h1>
      {mayAdminister(useSettings().data)
        ? <UsersPanel />
        : <p className="soft"><Trans>Administrators see here who may use the box, and add, change and block people.</Trans></p>}
    </>
  );
}
