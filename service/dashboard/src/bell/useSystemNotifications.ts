import { useNavigate } from "@tanstack/react-router";
import { useEffect, useRef } from "react";

import { speaks } from "../api/stream";
import { headlineOf, type JobNotification, newsOf } from "../lib/notifications";
import { useWanted } from "./readNotifications";

/** Shows what is new as notifications of the browser, if they are wanted and this tab speaks for the browser. */
export function useSystemNotifications(all: readonly JobNotification[] | undefined): void {
  const [wanted] = useWanted();
  const navigate = useNavigate();
  const before = useRef<ReadonlySet<string> | null>(null);
  useEffect(() => {
    if (all === undefined) return;
    const news = newsOf(before.current, all);
    before.current = new Set([...(before.current ?? []), ...all.map(({ id }) => id)]);
    if (!wanted || !speaks()) return;
    for (const one of news) {
      show(one, () => void navigate({ to: "/jobs/$jobId", params: { jobId: String(one.number) } }));
    }
  }, [all, wanted, navigate]);
}

function show(one: JobNotification, onClick: () => void): void {
  if (!("Notification" in window) || Notification.permission !== "granted") return;
  try {
    const shown = new Notification(headlineOf(one), { tag: one.id, icon: "/mark.svg", body: one.message ?? "" });
    shown.onclick = () => {
      window.focus();
      shown.close();
      onClick();
    };
  } catch (error) {
    // Browsers of phones let only service workers notify.
    if (!(error instanceof TypeError)) throw error;
  }
}
