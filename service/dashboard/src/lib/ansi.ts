/** A part of a line that looks alike. */
export interface Span {
  text: string;
  /** Class names of its look, separated by spaces; empty for plain text. */
  look: string;
  /** A colour of its own, where the 16 named ones do not do. */
  color: string | null;
}

interface Look {
  color: string | null;
  named: number | null;
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underline: boolean;
}

const PLAIN: Look = { color: null, named: null, bold: false, faint: false, italic: false, underline: false };

/* eslint-disable no-control-regex -- control characters are what these find */
const ESCAPE = /\u001b\[([0-?]*)[ -/]*([@-~])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-_]/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;
/* eslint-enable no-control-regex */

/** A line as a terminal would leave it: what follows the last carriage return, in its colours. */
export function spans(line: string): Span[] {
  const body = line.endsWith("\r") ? line.slice(0, -1) : line;
  const shown = body.slice(body.lastIndexOf("\r") + 1);
  const found: Span[] = [];
  let [look, from] = [PLAIN, 0];
  const add = (text: string) => {
    const visible = text.replace(CONTROL, "");
    if (visible !== "") found.push({ text: visible, look: classes(look), color: look.color });
  };
  for (const escape of shown.matchAll(ESCAPE)) {
    add(shown.slice(from, escape.index));
    from = escape.index + escape[0].length;
    if (escape[2] === "m") look = changed(look, escape[1] ?? "");
  }
  add(shown.slice(from));
  return found;
}

function classes({ named, bold, faint, italic, underline }: Look): string {
  return [
    named !== null && `ansi-${named}`, bold && "ansi-bold", faint && "ansi-faint", italic && "ansi-italic",
    underline && "ansi-underline",
  ].filter((one) => one !== false).join(" ");
}

const SWITCHES: Record<number, Partial<Look>> = {
  1: { bold: true }, 2: { faint: true }, 3: { italic: true }, 4: { underline: true },
  22: { bold: false, faint: false }, 23: { italic: false }, 24: { underline: false }, 39: { named: null, color: null },
};

/** The look after a sequence of codes (SGR); backgrounds are left out. */
function changed(look: Look, codes: string): Look {
  const numbers = codes.split(/[;:]/).map((one) => Number(one === "" ? 0 : one));
  let next = look;
  for (let at = 0; at < numbers.length; at += 1) {
    const code = numbers[at] ?? 0;
    if (code === 38) next = { ...next, ...extended(numbers.slice(at + 1)) };
    else next = switched(next, code);
    if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4;
  }
  return next;
}

function switched(look: Look, code: number): Look {
  if (code === 0) return PLAIN;
  if (code in SWITCHES) return { ...look, ...SWITCHES[code] };
  const named = code >= 30 && code <= 37 ? code - 30 : code >= 90 && code <= 97 ? code - 82 : null;
  return named === null ? look : { ...look, named, color: null };
}

/** One of 256 colours, or red, green and blue. */
function extended([kind, ...values]: readonly number[]): Partial<Look> {
  const [first = 0, green = 0, blue = 0] = values;
  if (kind === 2) return { named: null, color: `rgb(${first} ${green} ${blue})` };
  if (first < 16) return { named: first, color: null };
  if (first >= 232) return { named: null, color: `rgb(${Array(3).fill(8 + (first - 232) * 10).join(" ")})` };
  const level = (part: number) => (part === 0 ? 0 : 55 + part * 40);
  const cube = first - 16;
  const parts = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map(level);
  return { named: null, color: `rgb(${parts.join(" ")})` };
}

/** The text of a line alone. */
export function plain(line: string): string {
  return spans(line).map(({ text }) => text).join("");
}

/** Parts of a text that hold some words, and those between them; letters of both sizes are alike. */
export function marked(text: string, words: string): { text: string; hit: boolean }[] {
  if (words === "") return [{ text, hit: false }];
  const [small, wanted] = [text.toLowerCase(), words.toLowerCase()];
  const parts: { text: string; hit: boolean }[] = [];
  let from = 0;
  for (let at = small.indexOf(wanted); at >= 0; at = small.indexOf(wanted, from)) {
    if (at > from) parts.push({ text: text.slice(from, at), hit: false });
    from = at + wanted.length;
    parts.push({ text: text.slice(at, from), hit: true });
  }
  if (from < text.length) parts.push({ text: text.slice(from), hit: false });
  return parts;
}
