import { useEffect, useState } from "react";

import type { Range } from "../lib/buckets";
import type { View } from "./view";

const SETTLE_MS = 200;

/** What the charts show, once it has rested. */
export function useSettledView(view: View): Range | null {
  const [range, setRange] = useState<Range | null>(null);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = view.subscribe((next) => {
      clearTimeout(timer);
      timer = setTimeout(() => setRange(next), SETTLE_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [view]);
  return range;
}
