import { useCallback, useMemo, useSyncExternalStore } from "react";

/** Changes of what this tab keeps; those of other tabs come as `storage`. */
const changes = new EventTarget();

function subscribe(listener: () => void): () => void {
  changes.addEventListener("change", listener);
  addEventListener("storage", listener);
  return () => {
    changes.removeEventListener("change", listener);
    removeEventListener("storage", listener);
  };
}

/** A text that this browser keeps for all of its tabs, and a way to change it. */
function useKept(key: string): [string | null, (text: string) => void] {
  const kept = useSyncExternalStore(subscribe, () => localStorage.getItem(key));
  const keep = useCallback((text: string) => {
    localStorage.setItem(key, text);
    changes.dispatchEvent(new Event("change"));
  }, [key]);
  return [kept, keep];
}

/** The ids of the notifications that a person has read in this browser, and a way to set them. */
export function useRead(user: string): [ReadonlySet<string>, (ids: readonly string[]) => void] {
  const [kept, keep] = useKept(`torchyard-read-${user}`);
  const read = useMemo(() => new Set(kept === null ? [] : kept.split("\n")), [kept]);
  return [read, useCallback((ids) => keep(ids.join("\n")), [keep])];
}

/** Whether this browser also tells by the notifications of the system, which a person turns on. */
export function useWanted(): [boolean, (wanted: boolean) => void] {
  const [kept, keep] = useKept("torchyard-notify");
  return [kept === "on", useCallback((wanted) => keep(wanted ? "on" : "off"), [keep])];
}
