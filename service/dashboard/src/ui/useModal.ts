import { type MouseEvent, type RefObject, useEffect, useRef } from "react";

interface Modal {
  ref: RefObject<HTMLDialogElement | null>;
  /** What its `dialog` element takes. */
  props: {
    ref: RefObject<HTMLDialogElement | null>;
    onClose: () => void;
    onMouseDown: (press: MouseEvent) => void;
    onClick: (click: MouseEvent) => void;
  };
}

/** A modal dialog; Escape closes it, and unless it `stays` a click beside it: one that has begun there, too. */
export function useModal(onClose: () => void, stays = false): Modal {
  const ref = useRef<HTMLDialogElement>(null);
  const pressed = useRef<EventTarget>(null);
  useEffect(() => ref.current?.showModal(), []);
  const onMouseDown = ({ target }: MouseEvent) => {
    pressed.current = target;
  };
  const onClick = ({ target }: MouseEvent) => {
    if (!stays && target === ref.current && pressed.current === target) ref.current.close();
  };
  return { ref, props: { ref, onClose, onMouseDown, onClick } };
}
