import { useState } from "react";

const KEY = "torchyard-lanes-hours";
export const HOURS = ["1", "6", "24"] as const;
export type Hours = (typeof HOURS)[number];

/** How far back the lanes reach, kept in this browser. */
export function useHours(): [Hours, (hours: Hours) => void] {
  const [hours, setHours] = useState(() => HOURS.find((each) => each === localStorage.getItem(KEY)) ?? "6");
  const change = (key: Hours) => {
    localStorage.setItem(KEY, key);
    setHours(key);
  };
  return [hours, change];
}
