import { useSearch } from "@tanstack/react-router";
import { useCallback, useEffect, useRef, useState } from "react";

import { type ChartChange, type ChartSettings, parseChartSettings } from "../lib/chartSettings";
import { useSearchChange } from "../ui/useSearchChange";
import { useSettled } from "../ui/useSettled";

/** How long settings rest before they stand in the address, in milliseconds: a slider moves often. */
const SETTLE_MS = 250;

/** How the charts are shown: as the address says at first, and the address follows. */
export function useChartSettings(from: "/jobs/$jobId/$tab" | "/shared/$token"): [ChartSettings, (change: ChartChange) => void] {
  const changeSearch = useSearchChange(from);
  const [settings, setSettings] = useState<ChartSettings>(useSearch({ from }));
  const settled = useSettled<ChartSettings>(settings, SETTLE_MS);
  const written = useRef(settings);
  useEffect(() => {
    if (settled === null || settled === written.current) return;
    written.current = settled;
    void changeSearch(() => settled);
  }, [settled, changeSearch]);
  const change = useCallback((part: ChartChange) => setSettings((known) => {
    const next = parseChartSettings({ ...known, ...part });
    return JSON.stringify(next) === JSON.stringify(known) ? known : next;
  }), []);
  return [settings, change];
}
