import { useEffect, useLayoutEffect, useRef, useState } from "react";

import { clean } from "../lib/log";
import { Notice } from "../ui/Notice";
import { type LogSource, useLog } from "./useLog";

/** Height of a line in pixels, as `.log-line` has it. */
const LINE = 18;
const MARGIN = 30;

/** One rank's log. Only the lines in sight are drawn; scrolling up pauses following. */
export function LogView({ source }: { source: LogSource }) {
  const [following, setFollowing] = useState(true);
  const { log, live, error, loadEarlier } = useLog(source, !following);
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 0 });
  const lines = log.lines.at(-1) === "" ? log.lines.length - 1 : log.lines.length;
  const base = useRef(log.base);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    if (following) element.scrollTop = element.scrollHeight;
    else element.scrollTop += (base.current - log.base) * LINE;
    base.current = log.base;
  }, [log, following]);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const watch = new ResizeObserver(() => setView({ top: element.scrollTop, height: element.clientHeight }));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const onScroll = () => {
    const element = box.current;
    if (element === null) return;
    setView({ top: element.scrollTop, height: element.clientHeight });
    setFollowing(element.scrollHeight - element.scrollTop - element.clientHeight < LINE);
  };
  const from = Math.max(0, Math.floor(view.top / LINE) - MARGIN);
  const to = Math.min(lines, Math.ceil((view.top + view.height) / LINE) + MARGIN);
  return (
    <div className="log" data-following={following || undefined}>
      <Notice error={error} />
      {log.start !== null && log.start > 0 && (
        <button type="button" className="button small log-earlier" onClick={() => void loadEarlier()}>Load earlier</button>
      )}
      <div ref={box} className="log-box" onScroll={onScroll} tabIndex={0} role="log" aria-label="Log" aria-live="off">
        <div className="log-sheet" style={{ height: lines * LINE }}>
          <div style={{ transform: `translateY(${from * LINE}px)` }}>
            {log.lines.slice(from, to).map((line, index) => (
              <div key={log.base + from + index} className="log-line">{clean(line)}</div>
            ))}
          </div>
        </div>
      </div>
      <div className="log-foot">
        <span className="faint">{live ? (following ? "following" : "paused") : "complete"}</span>
        {!following && (
          <button type="button" className="button small" onClick={() => setFollowing(true)}>Jump to end</button>
        )}
      </div>
    </div>
  );
}
