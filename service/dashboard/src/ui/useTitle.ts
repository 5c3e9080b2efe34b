import { useEffect } from "react";

const PRODUCT = "TorchYard";

/** Names the browser's tab after what the page shows, while it is shown. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title === undefined ? PRODUCT : `${title} · ${PRODUCT}`;
    return () => {
      document.title = PRODUCT;
    };
  }, [title]);
}
