import { wholeUnit } from "./time";

/** Seconds as one writes them in a setting: `7d`, `90s`. */
export function setting(seconds: number | string): string {
  if (typeof seconds === "string") return seconds;
  const [unit, size] = wholeUnit(seconds);
  return `${seconds / size}${unit.charAt(0)}`;
}

const SIZES = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20]] as const;

/** Bytes as one writes them in a setting, exactly: `2TiB`, `1500MiB`, `1000`. */
export function sizeSetting(size: number | string): string {
  if (typeof size === "string") return size;
  const [unit, step] = SIZES.find(([, each]) => size > 0 && size % each === 0) ?? ["", 1];
  return `${size / step}${unit}`;
}

/** What a plain number in a spec counts, as the schema tells. */
export type Unit = "seconds" | "bytes";

/** A number as one writes it in a spec: `2h`, `1GiB`. */
export function inUnit(value: number, unit: Unit): string {
  return unit === "bytes" ? sizeSetting(value) : setting(value);
}

/** Words that stand between commas. */
export function listed(text: string): string[] {
  return text.split(",").map((word) => word.trim()).filter((word) => word !== "");
}

/** A number that may be left out. */
export function optional(text: string): number | null {
  return text.trim() === "" ? null : Number(text);
}
