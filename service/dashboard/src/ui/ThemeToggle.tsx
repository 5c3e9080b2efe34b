import { t } from "@lingui/core/macro";

import { useTheme } from "../lib/theme";

export function ThemeToggle() {
  const [theme, toggle] = useTheme();
  return (
    <button
      type="button"
      className="button small ghost"
      onClick={toggle}
      aria-label={theme === "dark" ? t`Use the light theme` : t`Use the dark theme`}
      title={theme === "dark" ? t`Light theme` : t`Dark theme`}
    >
      <ThemeIcon dark={theme === "dark"} />
    </button>
  );
}

function ThemeIcon({ dark }: { dark: boolean }) {
  return (
    <svg viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" fill="none" stroke="currentColor" strokeWidth="1.6">
      {dark
        ? <path d="M10 1v3M10 16v3M1 10h3M16 10h3M4 4l2 2M14 14l2 2M4 16l2-2M14 6l2-2M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7" />
        : <path d="M16.5 12.5A7 7 0 0 1 7.5 3.5a7 7 0 1 0 9 9Z" strokeLinejoin="round" />}
    </svg>
  );
}
