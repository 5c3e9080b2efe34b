import { plural, t } from "@lingui/core/macro";
import { useEffect, useEffectEvent, useRef } from "react";

import { type LogDocument, placeOf } from "../lib/logDocument";
import { type Found, nextMatch } from "../lib/logSearch";

interface Props {
  words: string;
  onWords: (words: string) => void;
  found: Found;
  document: LogDocument;
  onShow: (line: number) => void;
}

/** The field of the search; Enter shows what is found next, with Shift what came before, once there is any. */
export function LogSearchField({ words, onWords, found, document, onShow }: Props) {
  const at = useRef(-1);
  const awaited = useRef<1 | -1 | null>(null);
  const step = (by: 1 | -1) => {
    const { matches, done } = found;
    awaited.current = matches.length === 0 && !done ? by : null;
    if (matches.length === 0) return;
    at.current = nextMatch(at.current, by, matches.length);
    const hit = matches[at.current];
    const line = hit && placeOf(document, hit.rank, hit.match.line);
    if (line != null) onShow(line);
  };
  const stepOn = useEffectEvent(() => awaited.current !== null && step(awaited.current));
  useEffect(() => void stepOn(), [found]);
  return (
    <form
      className="log-search"
      role="search"
      onSubmit={(submit) => {
        submit.preventDefault();
        step(1);
      }}
    >
      <input
        type="search"
        aria-label={t`Search the log`}
        placeholder={t`Search the log`}
        value={words}
        onChange={({ target }) => {
          at.current = -1;
          awaited.current = null;
          onWords(target.value);
        }}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !event.shiftKey) return;
          event.preventDefault();
          step(-1);
        }}
      />
      <span className="faint" role="status">{words.trim() === "" ? "" : toldOf(found)}</span>
    </form>
  );
}

function toldOf({ count, done, error }: Found): string {
  if (error !== null) return t`the search failed`;
  return done
    ? plural(count, { one: "# line", other: "# lines" })
    : plural(count, { one: "# line, reading…", other: "# lines, reading…" });
}
