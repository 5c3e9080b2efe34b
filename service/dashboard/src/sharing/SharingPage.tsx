import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { mayAdminister, useSettings } from "../api/session";
import { useTitle } from "../ui/useTitle";
import { Calibration } from "./Calibration";
import { IdlePanel } from "./IdlePanel";
import { PolicyPanel } from "./PolicyPanel";
import { Reservations } from "./Reservations";
import { Shares } from "./Shares";
import { Usage } from "./Usage";

/** How the box is shared, and what became of it. */
export function SharingPage() {
  useTitle(t`Sharing`);
  const admin = mayAdminister(useSettings().data);
  return (
    <>
      <h1 className="page-title"><Trans>Sharing</Trans></h1>
      <div className="sharing">
        <IdlePanel />
        <Usage />
        <Shares admin={admin} />
        <div className="sharing-pair">
          <Reservations admin={admin} />
          <PolicyPanel admin={admin} />
        </div>
        <Calibration />
      </div>
    </>
  );
}
