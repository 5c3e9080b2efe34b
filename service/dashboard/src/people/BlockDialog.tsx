import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { useChangeUser } from "../api/people";
import type { Quota, User } from "../api/types";
import { blockedWords } from "../lib/people";
import { Dialog } from "../ui/Dialog";
import { Notice } from "../ui/Notice";
import { useResource } from "../ui/useResource";

interface Props {
  user: User;
  standing: Quota["standing"] | undefined;
  onClose: () => void;
}

/** Says what becomes of somebody's jobs, then ends what they may; or lets them in again. */
export function BlockDialog({ user, standing, onClose }: Props) {
  const change = useChangeUser();
  const { one, many } = useResource();
  const { name, active } = user;
  return (
    <Dialog
      title={active ? t`Block ${name}?` : t`Let ${name} in again?`}
      confirm={active ? t`Block` : t`Let in`}
      danger={active}
      busy={change.isPending}
      onConfirm={() => change.mutate({ name, changes: { active: !active } }, { onSuccess: onClose })}
      onClose={onClose}
    >
      {active
        ? <ul className="told">{blockedWords(standing, one, many).map((words) => <li key={words}>{words}</li>)}</ul>
        : (
            <p>
              <Trans>
                Waiting jobs start in their turn. Tokens that have ended stay so: make a sign-in link or a new token.
              </Trans>
            </p>
          )}
      <Notice error={change.error} />
    </Dialog>
  );
}
