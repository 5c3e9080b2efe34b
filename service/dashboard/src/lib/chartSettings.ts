/** How the charts of a job are shown, as it stands in the address. What is as usual is absent. */
export interface ChartSettings {
  /** What the horizontal axis counts; steps if absent. */
  axis?: "time" | "wall";
  scale?: "log";
  /** Weight of the past in the moving average, 0 to 0.99. */
  smooth?: number;
  /** The part that is in sight, in units of the axis. */
  zoom?: [number, number];
  /** Names of lines that are not drawn. */
  hide?: string[];
  /** Names of charts that come first. */
  pin?: string[];
  /** The chart that fills the screen. */
  full?: string;
  /** Bounds of the vertical axis, by name of the chart. */
  y?: Record<string, [number, number]>;
  /** Whether the ranks of a metric are lines or one band; a band if absent and there are too many. */
  ranks?: "lines" | "band";
}

/** Settings that become others; those that become undefined are as usual again. */
export type ChartChange = { [Name in keyof ChartSettings]?: ChartSettings[Name] | undefined };

export const MAX_SMOOTHING = 0.99;

const one = <Word extends string>(value: unknown, ...words: Word[]): Word | undefined => (
  words.find((word) => word === value)
);

/** Reads settings from an address; what cannot be read is left out. */
export function parseChartSettings(raw: Record<string, unknown>): ChartSettings {
  const read: Record<keyof ChartSettings, unknown> = {
    axis: one(raw.axis, "time", "wall"),
    scale: one(raw.scale, "log"),
    smooth: typeof raw.smooth === "number" && raw.smooth > 0 && raw.smooth <= MAX_SMOOTHING ? raw.smooth : undefined,
    zoom: isRange(raw.zoom) ? raw.zoom : undefined,
    hide: names(raw.hide),
    pin: names(raw.pin),
    full: typeof raw.full === "string" && raw.full !== "" ? raw.full : undefined,
    y: rangesOf(raw.y),
    ranks: one(raw.ranks, "lines", "band"),
  };
  return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined));
}

function isRange(value: unknown): value is [number, number] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [low, high] = value as unknown[];
  return typeof low === "number" && typeof high === "number" && low < high;
}

function names(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const found = value.filter((each): each is string => typeof each === "string");
  return found.length > 0 ? found : undefined;
}

function rangesOf(value: unknown): Record<string, [number, number]> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const found = Object.entries(value).filter((entry): entry is [string, [number, number]] => isRange(entry[1]));
  return found.length > 0 ? Object.fromEntries(found) : undefined;
}

/** Words with one of them taken out, or put in if it was not there. */
export function toggled(words: readonly string[] | undefined, word: string): string[] {
  const known = words ?? [];
  return known.includes(word) ? known.filter((each) => each !== word) : [...known, word];
}
