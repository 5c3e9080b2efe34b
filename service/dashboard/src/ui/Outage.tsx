import { useReach } from "../api/reach";
import { clock } from "../lib/format";

/** Says that the service does not answer, and of when the data on the page are. */
export function Outage() {
  const { lost, answeredAt } = useReach();
  return (
    <div role="status">
      {lost && (
        <p className="outage">
          The service does not answer: reconnecting
          {answeredAt !== null && `. What is shown is from ${clock(new Date(answeredAt).toISOString())}`}.
        </p>
      )}
    </div>
  );
}
