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
  return `${fixed(scaled, digits)} ${UNITS[unit] ?? ""}`;
}

/** A metric's value, as sent: numbers with four significant digits, `nan`, `inf` and `-inf` as they are. */
export function metric(value: number | string): string {
  if (typeof value === "string") return value;
  if (isExtreme(value)) return scientific(value, 2);
  if (Number.isInteger(value) || Math.abs(value) >= 1e4) return fixed(value, 0);
  return written(value, { minimumSignificantDigits: 4, maximumSignificantDigits: 4 });
}

/** A number on an axis: as short as it can be told. */
export function tick(value: number): string {
  return isExtreme(value) ? scientific(value, 1) : written(value, { maximumSignificantDigits: 4 });
}

/** Whether it is told shortest as digits and a power of ten. */
function isExtreme(value: number): boolean {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6);
}

/** `3.00e-5`, in the manner of programs but for the sign between its digits. */
function scientific(value: number, digits: number): string {
  const [mantissa, exponent] = value.toExponential(digits).split("e");
  return `${fixed(Number(mantissa), digits)}e${exponent ?? ""}`;
}

/** A number with so many digits behind its decimal sign, and no groups before it. */
export function fixed(value: number, digits: number): string {
  return written(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function written(value: number, form: Intl.NumberFormatOptions): string {
  return formatOf(Intl.NumberFormat, { useGrouping: false, ...form }).format(value);
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
  return value === 0 ? "0" : value < 0.01 ? `<${fixed(0.01, 2)}` : fixed(value, value < 1 ? 2 : 1);
}

/** A share from 0 to 1 in percent. */
export function percent(share: number): string {
  return share > 0 && share < 0.01 ? "<1 %" : `${fixed(share * 100, 0)} %`;
}

/** Its first letter in upper case. */
export function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function plural(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? "" : "s"}`;
}
