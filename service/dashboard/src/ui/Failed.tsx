import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { NotLoaded } from "../lib/load";

/** Stands where a part of the page could not be loaded, or has failed. */
export function Failed({ error }: { error: unknown }) {
  return (
    <div className="failed notice" role="alert">
      <p>{words(error)}</p>
      <button type="button" className="button small" onClick={() => location.reload()}><Trans>Reload</Trans></button>
    </div>
  );
}

function words(error: unknown): string {
  if (!(error instanceof NotLoaded)) return t`This part of the page has failed.`;
  return error.updated
    ? t`TorchYard was updated. Reload the page to see this part.`
    : t`This part of the page could not be loaded.`;
}
