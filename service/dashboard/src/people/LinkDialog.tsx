import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useMakeLink } from "../api/people";
import type { User } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { ShownOnce } from "../ui/ShownOnce";

/** A link by which somebody signs in without a token. */
export function LinkDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const make = useMakeLink();
  const { name } = user;
  if (make.data !== undefined) {
    return (
      <ShownOnce
        title={t`Sign-in link for ${name}`}
        text={`${location.origin}/#login=${make.data.code}`}
        until={make.data.expires_at}
        onClose={onClose}
      >
        {t`Send it to ${name} alone: whoever opens it first is ${name} here. It is not shown again.`}
      </ShownOnce>
    );
  }
  return (
    <Dialog
      title={t`Make a sign-in link for ${name}?`}
      confirm={t`Make the link`}
      busy={make.isPending}
      onConfirm={() => make.mutate(name)}
      onClose={onClose}
    >
      <p><Trans>It opens the dashboard once, within a day, as {name}, who needs no token for it.</Trans></p>
      <Notice error={make.error} />
    </Dialog>
  );
}
