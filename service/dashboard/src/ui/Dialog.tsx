import { Trans } from "@lingui/react/macro";
import { type ReactNode, useEffect, useId, useRef } from "react";

interface Props {
  title: string;
  children: ReactNode;
  confirm: string;
  danger?: boolean;
  busy?: boolean;
  /** There is nothing to go back from. */
  only?: boolean;
  onConfirm: () => void;
  onClose: () => void;
}

/** A modal question; Escape and the backdrop mean no. */
export function Dialog({ title, children, confirm, danger, busy, only, onConfirm, onClose }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => ref.current?.showModal(), []);
  return (
    <dialog
      ref={ref}
      className="dialog"
      aria-labelledby={heading}
      onClose={onClose}
      onClick={(click) => click.target === ref.current && ref.current.close()}
    >
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
          <button type="submit" className={`button ${danger === true ? "danger" : "primary"}`} disabled={busy} autoFocus>
            {confirm}
          </button>
        </div>
      </form>
    </dialog>
  );
}
