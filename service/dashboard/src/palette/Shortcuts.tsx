import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";

import { later } from "../ui/later";
import { useModal } from "../ui/useModal";
import { askedBy, isEnter } from "./keys";
import type { Props } from "./Palette";

const Palette = later(() => import("./Palette"), "default", Words);
const Help = later(() => import("./Help"), "default");

/** How long after `g` a second key counts, in milliseconds. */
const SECOND_KEY_MS = 1_500;

/** Keys that work everywhere, and the button that opens the palette. */
export function Shortcuts() {
  const [open, setOpen] = useState<"palette" | "help" | null>(null);
  const navigate = useNavigate();
  const g = useRef(0);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const asked = askedBy(event, isField(event.target), Date.now() - g.current < SECOND_KEY_MS);
      g.current = asked?.kind === "prefix" ? Date.now() : 0;
      if (asked === null || document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      if (asked.kind === "go") void navigate({ to: asked.to, search: {} });
      else if (asked.kind !== "prefix") setOpen(asked.kind);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [navigate]);
  return (
    <>
      <button
        type="button"
        className="button small ghost palette-open"
        onClick={() => setOpen("palette")}
        aria-label={t`Search jobs, pages and actions`}
        title="Ctrl K"
      >
        <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" fill="none" stroke="currentColor">
          <circle cx="8.5" cy="8.5" r="5.5" strokeWidth="1.7" /><path d="m13 13 5 5" strokeWidth="1.7" />
        </svg>
      </button>
      {open === "palette" && <PaletteDialog onClose={() => setOpen(null)} onHelp={() => setOpen("help")} />}
      {open === "help" && <HelpDialog onClose={() => setOpen(null)} />}
    </>
  );
}

/** The palette in its dialog, which takes what is typed while the palette is loaded, too. */
function PaletteDialog({ onClose, onHelp }: { onClose: () => void; onHelp: () => void }) {
  const { ref, props } = useModal(onClose);
  const [words, setWords] = useState("");
  const [entered, setEntered] = useState<string | null>(null);
  useEffect(() => ref.current?.querySelector("input")?.focus(), [ref]);
  return (
    <dialog {...props} className="dialog palette" aria-label={t`Commands`}>
      <Palette
        words={words}
        onWords={setWords}
        entered={entered}
        onEntered={setEntered}
        onClose={onClose}
        onHelp={onHelp}
      />
    </dialog>
  );
}

/** The help in its dialog, which is open while the help is loaded, too: no key acts on the page beneath it. */
function HelpDialog({ onClose }: { onClose: () => void }) {
  const { props } = useModal(onClose);
  return (
    <dialog {...props} className="dialog" aria-label={t`Keys`}>
      <form method="dialog">
        <h2><Trans>Keys</Trans></h2>
        <Help />
        <div className="dialog-actions"><button type="submit" className="button"><Trans>Close</Trans></button></div>
      </form>
    </dialog>
  );
}

/** The palette's field before the palette is loaded. */
function Words({ words, onWords, onEntered }: Props) {
  return (
    <input
      cmdk-input=""
      aria-label={t`Commands`}
      value={words}
      onChange={({ target }) => onWords(target.value)}
      onKeyDown={(press) => isEnter(press) && onEntered(words)}
    />
  );
}

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}
