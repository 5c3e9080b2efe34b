/** An SVG path of values from 0 to `top` across a box, left to right. */
export function sparkPath(values: readonly number[], top: number, width: number, height: number): string {
  const pad = 1.5;
  const span = Math.max(1, values.length - 1);
  return values
    .map((value, index) => {
      const share = top > 0 ? Math.min(1, Math.max(0, value / top)) : 0;
      const x = (index / span) * width;
      const y = height - pad - share * (height - 2 * pad);
      return `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join(" ");
}
