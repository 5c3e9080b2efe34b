import { useSyncExternalStore } from "react";

export type Theme = "light" | "dark";

const KEY = "torchyard-theme";
const listeners = new Set<() => void>();

function current(): Theme {
  return document.documentElement.dataset.theme === "dark" ? "dark" : "light";
}

function apply(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
  listeners.forEach((listener) => listener());
}

matchMediaDark()?.addEventListener("change", (change) => {
  if (localStorage.getItem(KEY) === null) apply(change.matches ? "dark" : "light");
});

function matchMediaDark(): MediaQueryList | undefined {
  return typeof matchMedia === "undefined" ? undefined : matchMedia("(prefers-color-scheme: dark)");
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The theme in use, and a switch to the other one that is remembered in this browser. */
export function useTheme(): [Theme, () => void] {
  const theme = useSyncExternalStore(subscribe, current);
  const toggle = () => {
    const other = theme === "dark" ? "light" : "dark";
    localStorage.setItem(KEY, other);
    apply(other);
  };
  return [theme, toggle];
}
