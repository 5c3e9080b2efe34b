import { Trans } from "@lingui/react/macro";
import { type ReactNode, useId } from "react";

import { useModal } from "./useModal";

interface Props {
  title: string;
  children: ReactNode;
  confirm: string;
  danger?: boolean;
  busy?: boolean;
  /** There is nothing to go back from, and what is shown is not lost by a click beside it. */
  only?: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

/**
 * A modal question; Escape and the backdrop mean no. The browser gives the focus to its first field or, without any, to
 * the way back.
 */
export function Dialog({ title, children, confirm, danger, busy, only, onConfirm, onClose }: Props) {
  const { ref, props } = useModal(onClose, only);
  const heading = useId();
  return (
    <dialog {...props} className="dialog" aria-labelledby={heading}>
      <form
        method="dialog"
        onSubmit={(submit) => {
          submit.preventDefault();
          onConfirm();
        }}
      >
        <h2 id={heading}>{title}</h2>
        <div className="dialog-body">{children}</div>
        <div className="dialog-actions">
          {only !== true && <button type="button" className="button" onClick={() => ref.current?.close()}><Trans>Back</Trans></button>}
          <button type="submit" className={`button ${danger === true ? "danger" : "primary"}`} disabled={busy}>
            {confirm}
          </button>
        </div>
      </form>
    </dialog>
  );
}
