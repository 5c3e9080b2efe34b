import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import {
  type KeyboardEvent, type Ref, useEffect, useEffectEvent, useId, useImperativeHandle, useRef, useState,
} from "react";
import { flushSync } from "react-dom";

import { useNames } from "../api/table";
import { type Suggestion, suggestions } from "../lib/jobQuery";

export interface SearchHandle {
  /** What stands in the field, also where the address does not have it yet. */
  typed: () => string;
  /** Put other words into the field, for which the address is changed by whoever calls. */
  show: (text: string) => void;
  /** Put other words into the field, and search for them at once. */
  replace: (text: string) => void;
}

interface Props {
  ref: Ref<SearchHandle>;
  value: string;
  /** Metrics that the jobs in view have. */
  metrics: readonly string[];
  complaints: readonly string[];
  onChange: (text: string) => void;
}

const TYPING_MS = 250;
const MOVES: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };

/** The search, with suggestions: arrows choose one, Enter or Tab takes it, Escape puts them away. */
export function SearchBox({ ref, value, metrics, complaints, onChange }: Props) {
  const [id, list] = [useId(), useId()];
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  const [known, setKnown] = useState(value);
  /** What was searched for and has not come back as the value, in this order; more may have been typed since. */
  const [sent, setSent] = useState<readonly string[]>([]);
  const [caret, setCaret] = useState(0);
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const names = {
    user: useNames("user", open), project: useNames("project", open), tag: useNames("tag", open), sweep: useNames("sweep", open),
  };
  const found = open ? suggestions(text, caret, { ...names, metric: metrics }) : [];
  if (value !== known) {
    setKnown(value);
    const at = sent.indexOf(value);
    setSent(at === -1 ? [] : sent.slice(at + 1));
    if (at === -1 && value !== text.trim()) setText(value);
  }
  const send = (words: string) => {
    setSent((before) => [...before, words]);
    onChange(words);
  };
  const sendTyped = useEffectEvent(() => send(text.trim()));
  useEffect(() => {
    if (text.trim() === value) return;
    const timer = setTimeout(() => sendTyped(), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value]);
  useImperativeHandle(ref, () => ({
    typed: () => text.trim(),
    show: setText,
    replace: (words) => {
      setText(words);
      send(words);
    },
  }));
  useSlash(input);
  const take = (one: Suggestion) => {
    // At once: in a later frame the caret would leap back under a key that was pressed meanwhile.
    flushSync(() => {
      setText(one.text);
      setCaret(one.caret);
      setChosen(-1);
    });
    input.current?.setSelectionRange(one.caret, one.caret);
  };
  const press = (event: KeyboardEvent) => {
    // The keys of an input method choose among its own suggestions.
    if (event.nativeEvent.isComposing) return;
    const at = Math.min(chosen, found.length - 1);
    const pick = found[event.key === "Tab" ? Math.max(0, at) : at];
    const move = found.length === 0 ? undefined : MOVES[event.key];
    if (event.key === "Escape" && open) setOpen(false);
    else if (move !== undefined) setChosen((Math.max(at, move > 0 ? -1 : 0) + move + found.length) % found.length);
    else if ((event.key === "Enter" || event.key === "Tab") && pick !== undefined && !event.shiftKey) take(pick);
    else return;
    event.preventDefault();
  };
  return (
    <div className="search-box">
      <label htmlFor={id}><Trans>Search</Trans><kbd aria-hidden="true">/</kbd></label>
      <input
        ref={input}
        id={id}
        type="search"
        role="combobox"
        aria-expanded={found.length > 0}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={found[chosen] === undefined ? undefined : `${list}-${chosen}`}
        aria-invalid={complaints.length > 0}
        aria-describedby={complaints.length > 0 ? `${id}-complaints` : undefined}
        placeholder={t`name, user:alice, tag:baseline, state:failed, val/accuracy > 0.9`}
        value={text}
        spellCheck={false}
        autoComplete="off"
        onChange={({ target }) => {
          setText(target.value);
          setCaret(target.selectionStart ?? target.value.length);
          setOpen(true);
          setChosen(-1);
        }}
        onSelect={({ currentTarget }) => setCaret(currentTarget.selectionStart ?? 0)}
        onBlur={() => setOpen(false)}
        onKeyDown={press}
      />
      <ul id={list} role="listbox" aria-label={t`Suggestions`} className="suggestions" hidden={found.length === 0}>
        {found.map((one, index) => (
          <li
            key={one.label}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === chosen}
            onMouseDown={(event) => {
              event.preventDefault();
              take(one);
            }}
          >
            {one.label}
          </li>
        ))}
      </ul>
      {complaints.length > 0 && <p id={`${id}-complaints`} className="complaint" role="status">{complaints.join(". ")}</p>}
    </div>
  );
}

/** A slash puts the caret into the search, wherever nothing is typed. */
function useSlash(input: React.RefObject<HTMLInputElement | null>): void {
  useEffect(() => {
    const focus = (key: globalThis.KeyboardEvent) => {
      const typing = key.target instanceof Element && key.target.matches("input, textarea, select, [contenteditable]");
      if (key.key !== "/" || typing || key.ctrlKey || key.metaKey) return;
      key.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", focus);
    return () => document.removeEventListener("keydown", focus);
  }, [input]);
}
