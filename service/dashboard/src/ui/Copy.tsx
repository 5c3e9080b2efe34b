import { t } from "@lingui/core/macro";
import { useEffect, useState } from "react";

import { copyText } from "../lib/clipboard";

/** Puts a text on the clipboard and says so for a moment. */
export function Copy({ text, label = t`Copy` }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async (button: HTMLElement) => setDone(await copyText(text, button));
  return (
    <button type="button" className="button small" onClick={({ currentTarget }) => void copy(currentTarget)}>
      {done ? t`Copied` : label}
    </button>
  );
}
