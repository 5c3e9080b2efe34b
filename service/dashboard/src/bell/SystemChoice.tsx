import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { useWanted } from "./readNotifications";

/** Turns the browser's own notifications on, which asks for its permission, or off. */
export function SystemChoice() {
  const [wanted, setWanted] = useWanted();
  const [permission, setPermission] = useState(permissionNow);
  const change = async (on: boolean) => {
    if (on) setPermission(await Notification.requestPermission());
    setWanted(on && permissionNow() === "granted");
  };
  return (
    <div className="bell-choice">
      <label className="check">
        <input
          type="checkbox"
          checked={wanted && permission === "granted"}
          disabled={permission === null || permission === "denied"}
          onChange={({ target }) => void change(target.checked)}
        />
        <span><Trans>Notify me through the browser while no tab of the dashboard is in sight</Trans></span>
      </label>
      {permission === null && <p className="faint"><Trans>This browser does so only over https or on localhost.</Trans></p>}
      {permission === "denied" && (
        <p className="faint"><Trans>The browser blocks it: allow notifications in its settings of this site.</Trans></p>
      )}
    </div>
  );
}

/** What the browser allows; null where it has no notifications, as over plain http. */
function permissionNow(): NotificationPermission | null {
  return isSecureContext && "Notification" in window ? Notification.permission : null;
}
