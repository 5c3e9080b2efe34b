import "../styles/loading.css";

import { t } from "@lingui/core/macro";
import { useIsFetching } from "@tanstack/react-query";
import { useRouterState } from "@tanstack/react-router";
import { useEffect, useState } from "react";

/** Most pages are there before; a bar for each would flicker. */
const PATIENCE_MS = 400;

/** Tells that a page, or what it shows first, is on its way. */
export function LoadingBar() {
  const missing = useIsFetching({ predicate: ({ state }) => state.data === undefined });
  const opening = useRouterState({ select: ({ isLoading }) => isLoading });
  return missing > 0 || opening ? <Delayed /> : null;
}

function Delayed() {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return shown && <div className="loading-bar" role="progressbar" aria-label={t`Loading`} />;
}
