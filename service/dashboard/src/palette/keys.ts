/** Keys that work on every page, with what they do; the help lists them in this order. */
export const KEYS = [
  { keys: ["Ctrl K", "⌘ K"], does: "Open the command palette: jobs by number or name, pages, actions" },
  { keys: ["?"], does: "Show these keys" },
  { keys: ["g h"], does: "Go home" },
  { keys: ["g b"], does: "Go to the box" },
  { keys: ["g s"], does: "Go to sharing" },
  { keys: ["g c"], does: "Go to the comparison" },
] as const;

/** Keys of single parts of pages. */
export const LOCAL_KEYS = [
  { keys: ["j", "k", "↓", "↑"], does: "In the table of jobs: next and previous" },
  { keys: ["←", "→", "+", "−", "0"], does: "On a chart of the comparison: move, zoom, show all" },
  { keys: ["Enter", "Shift Enter"], does: "In the search of a log: next and previous line" },
  { keys: ["Esc"], does: "Close what is open" },
] as const;

/** Where the second key after `g` leads. */
export const PLACES: Readonly<Record<string, "/" | "/box" | "/sharing" | "/compare">> = {
  h: "/", b: "/box", s: "/sharing", c: "/compare",
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
