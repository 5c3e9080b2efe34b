const DAY_MS = 86_400_000;
const WEEK_MS = 7 * DAY_MS;

/** The ISO week of a moment, in UTC: `2026-W47`. */
export function weekOf(ms: number): string {
  const thursday = thursdayOf(ms);
  const year = new Date(thursday).getUTCFullYear();
  const number = 1 + Math.round((thursday - thursdayOf(Date.UTC(year, 0, 4))) / WEEK_MS);
  return `${year}-W${String(number).padStart(2, "0")}`;
}

function thursdayOf(ms: number): number {
  const day = Math.floor(ms / DAY_MS) * DAY_MS;
  return day + (4 - (new Date(day).getUTCDay() || 7)) * DAY_MS;
}

/** The week so many weeks later. */
export function shifted(week: string, weeks: number): string {
  const [year = 0, number = 1] = week.split("-W").map(Number);
  return weekOf(thursdayOf(Date.UTC(year, 0, 4)) + (number - 1 + weeks) * WEEK_MS);
}
