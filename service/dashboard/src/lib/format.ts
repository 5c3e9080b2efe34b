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

/** Seconds as the two largest units that matter: `3d 4h`, `12m 05s`, `8.2s`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)}s`;
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${pad(whole % 60)}s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h ${pad(Math.floor((whole % 3600) / 60))}m`;
  return `${Math.floor(whole / 86400)}d ${Math.floor((whole % 86400) / 3600)}h`;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}

/** A span in one coarse unit, for lists: `40s`, `12m`, `3h`, `5d`. */
export function age(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m`;
  if (whole < 86400) return `${Math.floor(whole / 3600)}h`;
  return `${Math.floor(whole / 86400)}d`;
}

/** Seconds between two RFC 3339 times; an absent end means now. */
export function secondsBetween(from: string, to: string | null, now: number): number {
  return ((to === null ? now : Date.parse(to)) - Date.parse(from)) / 1000;
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

/** Date and time in the reader's own zone; the year is told where it is not this one. */
export function moment(iso: string): string {
  const date = new Date(iso);
  const year = date.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" } as const;
  return date.toLocaleString(undefined, {
    ...year, day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false,
  });
}

/** Time of day in the reader's own zone. */
export function clock(iso: string): string {
  return new Date(iso).toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

const DAY_MS = 86_400_000;

/** A time to come or just past, as one says it: `14:20`, `Tue 14:20`, `24 Nov 14:20`, in the reader's own zone. */
export function hour(iso: string, now: number): string {
  const date = new Date(iso);
  const time = date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", hour12: false });
  if (date.toDateString() === new Date(now).toDateString()) return time;
  const near = Math.abs(date.getTime() - now) < 6 * DAY_MS;
  const day = near ? { weekday: "short" } as const : { day: "numeric", month: "short" } as const;
  return `${date.toLocaleDateString(undefined, day)} ${time}`;
}

/** A forecast by its median and its ninth decile. */
export function forecast(p50: string, p90: string | null | undefined, now: number): string {
  const [likely, late] = [hour(p50, now), p90 == null ? null : hour(p90, now)];
  return late === null || late === likely ? `about ${likely}` : `about ${likely}, by ${late} in nine cases of ten`;
}

/** GPU-hours, with as many digits as tell something. */
export function hours(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString();
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
