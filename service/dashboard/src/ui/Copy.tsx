import { t } from "@lingui/core/macro";
import { useEffect, useState } from "react";

/** Puts a text on the clipboard and says so for a moment. */
export function Copy({ text, label = t`Copy` }: { text: string; label?: string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
  };
  return <button type="button" className="button small" onClick={() => void copy()}>{done ? t`Copied` : label}</button>;
}
