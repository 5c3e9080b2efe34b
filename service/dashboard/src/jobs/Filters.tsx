import { useEffect, useRef, useState } from "react";

import { UNKNOWN } from "../lib/format";
import type { JobsSearch } from "../lib/search";
import { countsPerTab, TABS } from "../lib/states";

interface Props {
  search: JobsSearch;
  /** Jobs per state, counted up to `most`; undefined while nobody knows. */
  counts: { states: Partial<Record<string, number>>; most: number } | undefined;
  onChange: (change: Record<string, string | undefined>) => void;
}

const TYPING_MS = 250;

/** State tabs with counts, and the words to filter by. */
export function Filters({ search, counts, onChange }: Props) {
  const perTab = counts && countsPerTab(counts.states, counts.most);
  const tab = search.tab ?? "all";
  return (
    <div className="filters">
      <div className="tabs" role="group" aria-label="State">
        {TABS.map(({ key, label }) => (
          <button key={key} type="button" aria-pressed={key === tab} onClick={() => onChange({ tab: key })}>
            {label} <span className="count">{perTab?.[key] ?? UNKNOWN}</span>
          </button>
        ))}
      </div>
      <div className="words">
        <Word name="q" label="Search" value={search.q} onChange={onChange} slash />
        <Word name="user" label="User" value={search.user} onChange={onChange} />
        <Word name="project" label="Project" value={search.project} onChange={onChange} />
        <Word name="tag" label="Tag" value={search.tag} onChange={onChange} />
      </div>
    </div>
  );
}

interface WordProps {
  name: string;
  label: string;
  value: string | undefined;
  onChange: Props["onChange"];
  slash?: boolean;
}

function Word({ name, label, value = "", onChange, slash = false }: WordProps) {
  const [text, setText] = useState(value);
  const [known, setKnown] = useState(value);
  const input = useRef<HTMLInputElement>(null);
  if (value !== known) {
    setKnown(value);
    setText(value);
  }
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onChange({ [name]: text.trim() || undefined }), TYPING_MS);
    return () => clearTimeout(timer);
  });
  useSlash(slash, input);
  return (
    <label className="word">
      <span>{label}{slash && <kbd aria-hidden="true">/</kbd>}</span>
      <input ref={input} type="search" value={text} spellCheck={false} onChange={(event) => setText(event.target.value)} />
    </label>
  );
}

function useSlash(enabled: boolean, input: React.RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    if (!enabled) return;
    const focus = (key: KeyboardEvent) => {
      if (key.key !== "/" || key.target instanceof HTMLInputElement || key.ctrlKey || key.metaKey) return;
      key.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", focus);
    return () => document.removeEventListener("keydown", focus);
  }, [enabled, input]);
}
