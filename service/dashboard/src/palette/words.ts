/** 1 where each word that was typed is somewhere in what is named, else 0. */
export function hasWords(name: string, typed: string, keywords: readonly string[] = []): number {
  const text = [name, ...keywords].join(" ").toLowerCase();
  return typed.toLowerCase().split(/\s+/).every((word) => text.includes(word)) ? 1 : 0;
}
