import { Link, Outlet } from "@tanstack/react-router";

import { isUnauthorized } from "../api/client";
import { useLive } from "../api/live";
import { useSettings, useSignOut } from "../api/session";
import { useTheme } from "../lib/theme";
import { SignIn } from "../session/SignIn";
import { Notice } from "./Notice";

/** The page around every room, or the sign-in while nobody is signed in. */
export function Frame() {
  const settings = useSettings();
  useLive(settings.isSuccess);
  if (isUnauthorized(settings.error)) return <SignIn />;
  if (settings.data === undefined) return <main className="page"><Notice error={settings.error} /></main>;
  return (
    <>
      <a className="skip" href="#content">Skip to content</a>
      <header className="top">
        <Link to="/" search={{}} className="brand">
          <img src="/mark.svg" alt="" width="28" height="28" />
          <span>TorchYard</span>
        </Link>
        <nav aria-label="Rooms">
          <Link to="/" search={{}} activeOptions={{ includeSearch: false, exact: true }}>Jobs</Link>
          <Link to="/box">The box</Link>
        </nav>
        <Person name={settings.data.user.name} />
      </header>
      <main id="content" className="page" tabIndex={-1}><Outlet /></main>
      <footer className="foot">TorchYard {settings.data.version}</footer>
    </>
  );
}

function Person({ name }: { name: string }) {
  const [theme, toggle] = useTheme();
  const signOut = useSignOut();
  return (
    <div className="person">
      <button
        type="button"
        className="button small ghost"
        onClick={toggle}
        aria-label={theme === "dark" ? "Use the light theme" : "Use the dark theme"}
        title={theme === "dark" ? "Light theme" : "Dark theme"}
      >
        <span aria-hidden="true">{theme === "dark" ? "☀" : "☾"}</span>
      </button>
      <span className="person-name">{name}</span>
      <button type="button" className="button small ghost" onClick={() => void signOut()}>Sign out</button>
    </div>
  );
}
