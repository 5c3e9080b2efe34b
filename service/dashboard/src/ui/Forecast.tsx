import { Trans } from "@lingui/react/macro";

import { hour } from "../lib/time";
import { Time } from "./Time";

interface Props {
  /** The median, and the ninth decile where it is known; RFC 3339. */
  p50: string;
  p90: string | null | undefined;
  now: number;
}

/** When something is expected, and by when it is all but sure. */
export function Forecast({ p50, p90, now }: Props) {
  const late = p90 != null && hour(p90, now) !== hour(p50, now);
  return late
    ? <Trans>about <Time at={p50} near={now} />, by <Time at={p90} near={now} /> in nine cases of ten</Trans>
    : <Trans>about <Time at={p50} near={now} /></Trans>;
}
