import { t } from "@lingui/core/macro";
import {
  memo, type RefObject, useImperativeHandle, useLayoutEffect, useMemo, useRef, useState,
} from "react";

import { marked, type Span, spans } from "../lib/ansi";
import { type LogDocument, placeOf } from "../lib/logDocument";
import type { Found } from "../lib/logSearch";
import { LINE, MOST_PIXELS, Scroller } from "../lib/scroller";
import { clock } from "../lib/time";
import { type LogSource, type ShownLine, useLines } from "./useLogDocument";

/** Characters of a line that are drawn. */
const WIDEST = 5_000;

export interface LogHandle {
  /** Shows a line of the document, a little below the top. */
  show: (line: number) => void;
  end: () => void;
}

interface Props {
  source: LogSource;
  document: LogDocument;
  words: string;
  errors: Found;
  hits: Found;
  timestamps: boolean;
  /** The line that was jumped to. */
  current: number | null;
  handle: RefObject<LogHandle | null>;
  onFollowing: (following: boolean) => void;
}

/** Lines of a log. Only those in sight are read and drawn; scrolling up pauses following. */
export function LogView({ source, document, words, errors, hits, timestamps, current, handle, onFollowing }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const view = useScroll(box, document.lines, handle, onFollowing);
  const from = Math.max(0, Math.floor(view.top / LINE));
  const to = Math.min(document.lines, Math.ceil((view.top + view.height) / LINE) + 1);
  const lines = useLines(source, document, from, to);
  const several = source.ranks.length > 1;
  const height = Math.min(document.lines * LINE, MOST_PIXELS);
  return (
    <div className="log">
      <div ref={box} className="log-box" tabIndex={0} role="log" aria-label={t`Log`} aria-live="off">
        <div className="log-sheet" style={{ height }}>
          <div className="log-window">
            <div style={{ transform: `translateY(${from * LINE - view.top}px)` }}>
              {lines.map((line) => (
                <Line
                  key={line.line}
                  line={line}
                  words={words}
                  time={timestamps}
                  several={several}
                  current={line.line === current}
                />
              ))}
            </div>
          </div>
        </div>
      </div>
      <Marks document={document} found={errors} kind="error" />
      <Marks document={document} found={hits} kind="hit" />
    </div>
  );
}

function useScroll(
  box: RefObject<HTMLDivElement | null>, lines: number, handle: Props["handle"], onFollowing: Props["onFollowing"],
) {
  const [view, setView] = useState({ top: 0, height: 460 });
  const scroller = useRef<Scroller>(undefined);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const made = new Scroller(element, ({ top, height, following }) => {
      setView({ top, height });
      onFollowing(following);
    });
    scroller.current = made;
    const onWheel = (event: WheelEvent) => made.wheel(event);
    const onScroll = () => made.read();
    const watch = new ResizeObserver(() => made.refresh());
    element.addEventListener("wheel", onWheel, { passive: false });
    element.addEventListener("scroll", onScroll);
    watch.observe(element);
    return () => {
      element.removeEventListener("wheel", onWheel);
      element.removeEventListener("scroll", onScroll);
      watch.disconnect();
    };
  }, [box, onFollowing]);
  useLayoutEffect(() => scroller.current?.grow(lines), [lines]);
  useImperativeHandle(handle, () => ({
    show: (line) => scroller.current?.go((line - 5) * LINE),
    end: () => scroller.current?.go(Infinity),
  }), []);
  return view;
}

interface LineProps {
  line: ShownLine;
  words: string;
  time: boolean;
  several: boolean;
  current: boolean;
}

const Line = memo(function Line({ line: { own, block, text }, words, time, several, current }: LineProps) {
  const shown = text !== null && text.length > WIDEST ? text.slice(-WIDEST) : text;
  return (
    <div className="log-line" data-current={current || undefined}>
      <span className="log-number" aria-hidden="true">{own + 1}</span>
      {several && <span className="log-rank" data-rank={block.rank % 8}>{block.rank}</span>}
      {time && <span className="log-time">{timeOf(block.time)}</span>}
      <span className="log-text">
        {shown === null
          ? <span className="faint">…</span>
          : spans(shown).map((span, at) => <Part key={at} span={span} words={words} />)}
      </span>
    </div>
  );
}, isSame);

function Part({ span: { text, look, color }, words }: { span: Span; words: string }) {
  return (
    <span className={look || undefined} style={color === null ? undefined : { color }}>
      {marked(text, words).map((part, at) => (part.hit ? <mark key={at}>{part.text}</mark> : part.text))}
    </span>
  );
}

function isSame(one: LineProps, other: LineProps): boolean {
  const { line: before, ...rest } = one;
  const { line: after } = other;
  return before.text === after.text && before.own === after.own && before.block.time === after.block.time &&
    before.block.rank === after.block.rank &&
    (Object.keys(rest) as (keyof typeof rest)[]).every((name) => one[name] === other[name]);
}

/** When a line's part of the log came, as the service has noted it. */
function timeOf(time: number | null): string {
  return time === null ? "–" : clock(new Date(time * 1000).toISOString(), Date.now());
}

/** Marks beside the scrollbar, where lines were found. */
function Marks({ document, found, kind }: { document: LogDocument; found: Found; kind: "error" | "hit" }) {
  const places = useMemo(() => {
    const lines = found.matches.flatMap(({ rank, match }) => placeOf(document, rank, match.line) ?? []);
    return [...new Set(lines.map((line) => Math.round(line / Math.max(1, document.lines) * 300) / 3))];
  }, [document, found.matches]);
  return (
    <div className="log-marks" data-kind={kind} aria-hidden="true">
      {places.map((place) => <i key={place} style={{ top: `${place}%` }} />)}
    </div>
  );
}
