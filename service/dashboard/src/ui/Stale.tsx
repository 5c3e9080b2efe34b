import { Trans } from "@lingui/react/macro";

import { explain } from "../api/client";
import { Coded } from "./Coded";
import { Time } from "./Time";

interface Props {
  /** What was asked for: when it was last answered, and why not since. */
  found: { error: unknown; dataUpdatedAt: number };
  now: number;
}

/** Says that what is shown could not be read anew, and of when it is. */
export function Stale({ found: { error, dataUpdatedAt: at }, now }: Props) {
  if (error === null) return null;
  const reason = <Coded text={explain(error)} />;
  return (
    <p className="notice" role="alert">
      <Trans>
        What is shown here is from <Time at={new Date(at).toISOString()} near={now} />, and could not be read
        anew: {reason}
      </Trans>
    </p>
  );
}
