import { useEffect, useState } from "react";

/** A value that has stayed the same for so long; null counts at once. */
export function useSettled<T>(value: T | null, afterMs: number): T | null {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), value === null ? 0 : afterMs);
    return () => clearTimeout(timer);
  }, [value, afterMs]);
  return settled;
}
