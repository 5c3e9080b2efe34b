import { t } from "@lingui/core/macro";

/** Keys that work on every page, with what they do; the help lists them in this order. */
export const KEYS = [
  { keys: ["Ctrl K", "⌘ K"], does: t`Open the command palette: jobs by number or name, pages, actions` },
  { keys: ["?"], does: t`Show these keys` },
  { keys: ["g h"], does: t`Go home` },
  { keys: ["g b"], does: t`Go to the box` },
  { keys: ["g s"], does: t`Go to sharing` },
  { keys: ["g c"], does: t`Go to the comparison` },
  { keys: ["g n"], does: t`Go to the form for a new job` },
] as const;

/** Keys of single parts of pages. */
export const LOCAL_KEYS = [
  { keys: ["j", "k", "↓", "↑"], does: t`In the table of jobs: next and previous` },
  { keys: ["←", "→", "+", "−", "0"], does: t`On a chart: move, zoom, show all` },
  { keys: ["Shift ←", "Shift →"], does: t`On a chart: read values, point by point` },
  { keys: ["Enter", "Shift Enter"], does: t`In the search of a log: next and previous line` },
  { keys: ["Esc"], does: t`Close what is open` },
] as const;

/** Where the second key after `g` leads. */
export const PLACES: Readonly<Record<string, "/" | "/box" | "/sharing" | "/compare" | "/submit">> = {
  h: "/", b: "/box", s: "/sharing", c: "/compare", n: "/submit",
};

/** What a key asks for; `before` is the key before it, if that was `g` a moment ago. */
export type Asked = { kind: "palette" | "help" | "prefix" } | { kind: "go"; to: (typeof PLACES)[string] } | null;

interface Pressed {
  key: string;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

/** What a key that was pressed asks for, where `typing` says that it goes into a field. */
export function askedBy({ key, ctrlKey, metaKey, altKey }: Pressed, typing: boolean, afterG: boolean): Asked {
  const held = ctrlKey || metaKey;
  if (held && !altKey && key.toLowerCase() === "k") return { kind: "palette" };
  return typing || held || altKey ? null : askedAlone(key, afterG);
}

function askedAlone(key: string, afterG: boolean): Asked {
  if (key === "?") return { kind: "help" };
  const to = afterG ? PLACES[key] : undefined;
  if (to !== undefined) return { kind: "go", to };
  return key === "g" ? { kind: "prefix" } : null;
}

/** Whether a key is Enter, and not one that ends what an input method composes. */
export function isEnter({ key, nativeEvent }: { key: string; nativeEvent: { isComposing: boolean } }): boolean {
  return key === "Enter" && !nativeEvent.isComposing;
}
