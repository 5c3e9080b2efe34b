import { Trans } from "@lingui/react/macro";

import { age, secondsBetween } from "../lib/time";
import { Time } from "./Time";

/** How long ago something was; the time itself is told on hover. */
export function Ago({ at, now }: { at: string; now: number }) {
  const span = <Time at={at}>{age(secondsBetween(at, null, now))}</Time>;
  return <span><Trans>{span} ago</Trans></span>;
}
