import { formatOf } from "./intl";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** Instead of a number that is not known. */
export const UNKNOWN = "–";

/** Bytes as people read them, in powers of 1024. */
export function bytes(value: number): string {
  let unit = 0;
  let scaled = value;
  while (scaled >= 1024 && unit < UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || scaled >= 100 ? 0 : 1;
  return `${scaled.toFixed(digits)} ${UNITS[unit] ?? ""}`;
}

/** A metric's value, as sent: numbers with four significant digits, `nan`, `inf` and `-inf` as they are. */
export function metric(value: number | string): string {
  if (typeof value === "string") return value;
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) return value.toExponential(2);
  if (Number.isInteger(value)) return String(value);
  return value.toPrecision(4);
}

/** A number on an axis: as short as it can be told. */
export function tick(value: number): string {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(1) : String(Number(value.toPrecision(4)));
}

/** A count with its digits in groups: `1,200`. */
export function number(value: number): string {
  return formatOf(Intl.NumberFormat, {}).format(value);
}

/** Words in a row: `a, b`. */
export function list(words: readonly string[]): string {
  return formatOf(Intl.ListFormat, { type: "conjunction", style: "narrow" }).format(words);
}

/** GPU-hours, with as many digits as tell something. */
export function hours(value: number): string {
  if (value >= 100) return number(Math.round(value));
  return value === 0 ? "0" : value < 0.01 ? "<0.01" : value.toFixed(value < 1 ? 2 : 1);
}

/** A share from 0 to 1 in percent. */
export function percent(share: number): string {
  return share > 0 && share < 0.01 ? "<1 %" : `${Math.round(share * 100)} %`;
}

/** Its first letter in upper case. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
