import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { lazy, Suspense } from "react";

import { useLive } from "../api/live";
import { useOutage } from "../api/outage";
import { mayAdminister, useSettings, useSignOut } from "../api/session";
import { Shortcuts } from "../palette/Shortcuts";
import { SignIn } from "../session/SignIn";
import { Notice } from "./Notice";
import { NoticeBanner } from "./NoticeBanner";
import { OutageBanner } from "./OutageBanner";
import { ThemeToggle } from "./ThemeToggle";

const Bell = lazy(() => import("../bell/Bell"));

/** Every page; one of a public link asks for no sign-in and leads nowhere else. */
export function Root() {
  const linked = useLocation({ select: ({ pathname }) => pathname.startsWith("/shared/") });
  return linked ? <Outlet /> : <Frame />;
}

/** The frame of every page, or the sign-in while nobody is signed in. */
function Frame() {
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
  const signOut = useSignOut();
  return (
    <div className="person">
      <Shortcuts />
      <Suspense fallback={null}><Bell key={name} user={name} /></Suspense>
      <ThemeToggle />
      <Link to="/account" className="person-name" title="Your tokens and secrets">{name}</Link>
      <button type="button" className="button small ghost" onClick={() => void signOut()}>Sign out</button>
    </div>
  );
}
