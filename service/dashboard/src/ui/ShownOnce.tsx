import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { Command } from "./Command";
import { Dialog } from "./Dialog";
import { Time } from "./Time";

interface Props {
  title: string;
  text: string;
  until?: string | null;
  children: string;
  onClose: () => void;
}

/** Something secret that is shown now and never again. */
export function ShownOnce({ title, text, until, children, onClose }: Props) {
  return (
    <Dialog title={title} confirm={t`Done`} only onConfirm={onClose} onClose={onClose}>
      <Command text={text} />
      <p>{children}</p>
      {until != null && <p className="faint"><Trans>It counts until <Time at={until} />.</Trans></p>}
    </Dialog>
  );
}
