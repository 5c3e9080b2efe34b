/** Colours that the tokens hold for lines. */
export const TOKENS = 8;
/** Degrees between the hues of lines beyond those: the golden angle, so that neighbours are far apart. */
const GOLDEN = 137.508;

/** The colour of a line by its place, as CSS writes it: a token for the first, for others a hue of their own. */
export function lineColor(place: number, dark: boolean): string {
  if (place < TOKENS) return `var(--series-${place + 1})`;
  const hue = ((place - TOKENS) * GOLDEN + 20) % 360;
  return `hsl(${hue.toFixed(0)} ${dark ? "60% 68%" : "65% 36%"})`;
}

/** A colour as a canvas takes it, which knows no variables. */
export function resolveColor(element: Element, color: string): string {
  const style = getComputedStyle(element);
  return color.replace(/var\((--[\w-]+)\)/g, (_, name: string) => style.getPropertyValue(name).trim());
}
