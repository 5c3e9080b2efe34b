import { Link, Outlet } from "@tanstack/react-router";
import { lazy, Suspense } from "react";

import { useLive } from "../api/live";
import { useOutage } from "../api/outage";
import { mayAdminister, useSettings, useSignOut } from "../api/session";
import { useTheme } from "../lib/theme";
import { Shortcuts } from "../palette/Shortcuts";
import { SignIn } from "../session/SignIn";
import { Notice } from "./Notice";
import { NoticeBanner } from "./NoticeBanner";
import { OutageBanner } from "./OutageBanner";

const Bell = lazy(() => import("../bell/Bell"));

/** The frame of every page, or the sign-in while nobody is signed in. */
export function Frame() {
  const settings = useSettings();
  const outage = useOutage();
  useLive(settings.data?.user.id);
  if (settings.data === null) return <SignIn />;
  if (settings.data === undefined) return <main className="page"><Notice error={settings.error} /></main>;
  return (
    <>
      <a className="skip" href="#content">Skip to content</a>
      <header className="top">
        <Link to="/" search={{}} className="brand" aria-label="TorchYard">
          <img src="/mark.svg" alt="" width="28" height="28" />
          <span>TorchYard</span>
        </Link>
        <nav aria-label="Pages">
          <Link to="/" search={{}} activeOptions={{ includeSearch: false, exact: true }}>Home</Link>
          <Link to="/box">The box</Link>
          <Link to="/sharing">Sharing</Link>
          <Link to="/projects">Projects</Link>
          {mayAdminister(settings.data) && <Link to="/people">People</Link>}
          {mayAdminister(settings.data) && <Link to="/audit">Audit</Link>}
        </nav>
        <Person name={settings.data.user.name} />
      </header>
      <OutageBanner />
      <NoticeBanner />
      <main id="content" className="page" tabIndex={-1} data-stale={outage !== null || undefined}><Outlet /></main>
      <footer className="foot">TorchYard {settings.data.version} · <a href="/docs">REST API</a></footer>
    </>
  );
}

function Person({ name }: { name: string }) {
  const [theme, toggle] = useTheme();
  const signOut = useSignOut();
  return (
    <div className="person">
      <Shortcuts />
      <Suspense fallback={null}><Bell key={name} user={name} /></Suspense>
      <button
        type="button"
        className="button small ghost"
        onClick={toggle}
        aria-label={theme === "dark" ? "Use the light theme" : "Use the dark theme"}
        title={theme === "dark" ? "Light theme" : "Dark theme"}
      >
        <ThemeIcon dark={theme === "dark"} />
      </button>
      <Link to="/account" className="person-name" title="Your tokens and secrets">{name}</Link>
      <button type="button" className="button small ghost" onClick={() => void signOut()}>Sign out</button>
    </div>
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
