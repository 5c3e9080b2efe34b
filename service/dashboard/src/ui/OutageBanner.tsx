import { useOutage } from "../api/outage";
import { Time } from "./Time";

/** Says that the service does not answer, and of when the data on the page are. */
export function OutageBanner() {
  const outage = useOutage();
  const at = outage?.lastAnswerAt ?? null;
  return (
    <div role="status">
      {outage !== null && (
        <p className="outage">
          The service does not answer: reconnecting
          {at !== null && <>. What is shown is from <Time at={new Date(at).toISOString()} /></>}.
        </p>
      )}
    </div>
  );
}
