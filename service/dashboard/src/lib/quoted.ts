/** A sentence in pieces: its words, and what it quotes in backticks; an unpaired one is text. */
export function quoted(text: string): { text: string; code: boolean }[] {
  return text
    .split(/`([^`]+)`/)
    .map((piece, index) => ({ text: piece, code: index % 2 === 1 }))
    .filter((piece) => piece.text !== "");
}
