import { useMemo } from "react";

/** A set of numbers, the same one as long as it holds the same. */
export function useStableSet(numbers: Iterable<number>): ReadonlySet<number> {
  const key = [...numbers].join(",");
  return useMemo(() => new Set(key === "" ? [] : key.split(",").map(Number)), [key]);
}
