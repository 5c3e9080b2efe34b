type Bounds = readonly [number, number];

/**
 * The part of a vertical axis that chosen bounds show, given the least value of the data. A logarithmic axis has no
 * place for zero and what is below, and uPlot would look for its ticks without end: it begins at the data there.
 */
export function shownBounds([low, high]: Bounds, logarithmic: boolean, least: number | null): [number, number] | null {
  if (!logarithmic || low > 0) return [low, high];
  if (high <= 0) return null;
  return [least !== null && least > 0 && least < high ? least : high / 1_000, high];
}
