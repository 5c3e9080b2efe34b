import { useMakeLink } from "../api/people";
import type { User } from "../api/types";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { ShownOnce } from "../ui/ShownOnce";

/** A link by which somebody signs in without a token. */
export function LinkDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const make = useMakeLink();
  if (make.data !== undefined) {
    return (
      <ShownOnce
        title={`Sign-in link for ${user.name}`}
        text={`${location.origin}/#login=${make.data.code}`}
        until={make.data.expires_at}
        onClose={onClose}
      >
        {`Send it to ${user.name} alone: whoever opens it first is ${user.name} here. It is not shown again.`}
      </ShownOnce>
    );
  }
  return (
    <Dialog
      title={`Make a sign-in link for ${user.name}?`}
      confirm="Make the link"
      busy={make.isPending}
      onConfirm={() => make.mutate(user.name)}
      onClose={onClose}
    >
      <p>It opens the dashboard once, within a day, as {user.name}, who needs no token for it.</p>
      <Notice error={make.error} />
    </Dialog>
  );
}
