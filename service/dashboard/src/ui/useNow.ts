import { useEffect, useState } from "react";

import { useOutage } from "../api/outage";

/**
 * The time in milliseconds, anew every so often, for ages that grow on the page. It stands still while the service does
 * not answer, since nobody knows then what goes on.
 */
export function useNow(everyMs = 1000): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  const lastAnswerAt = useOutage()?.lastAnswerAt ?? null;
  return lastAnswerAt === null ? now : Math.min(lastAnswerAt, now);
}
