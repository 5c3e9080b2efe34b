import { Trans } from "@lingui/react/macro";

import { useOutage } from "../api/outage";
import { Time } from "./Time";

/** Says that the service does not answer, and of when the data on the page are. */
export function OutageBanner() {
  const outage = useOutage();
  const at = outage?.lastAnswerAt ?? null;
  const time = at !== null && <Time at={new Date(at).toISOString()} />;
  return (
    <div role="status">
      {outage !== null && (
        <p className="outage">
          {time === false
            ? <Trans>The service does not answer: reconnecting.</Trans>
            : <Trans>The service does not answer: reconnecting. What is shown is from {time}.</Trans>}
        </p>
      )}
    </div>
  );
}
