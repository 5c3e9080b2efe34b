import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useMemo, useState } from "react";

import { SHOWN_BYTES, useCodeText } from "../api/compare";
import type { CodeFile } from "../api/types";
import { type DiffLine, diffLines } from "../lib/differences";
import { bytes } from "../lib/format";
import { Notice } from "../ui/Notice";

export interface Code {
  job: string;
  files: readonly CodeFile[];
}

interface Changed {
  path: string;
  before: CodeFile | null;
  after: CodeFile | null;
}

/** Files that two jobs do not have alike, each with its lines once it is opened. */
export function CodeDiff({ before, after }: { before: Code; after: Code }) {
  const changed = useMemo(() => changes(before.files, after.files), [before.files, after.files]);
  if (changed.length === 0) return <p className="soft pad"><Trans>The code is the same.</Trans></p>;
  return (
    <ul className="code-diff">
      {changed.map((file, at) => (
        <FileDiff key={file.path} file={file} before={before.job} after={after.job} open={at === 0} />
      ))}
    </ul>
  );
}

export function changes(before: readonly CodeFile[], after: readonly CodeFile[]): Changed[] {
  const known = new Map(before.map((file) => [file.path, file]));
  const found: Changed[] = after.flatMap((file) => {
    const old = known.get(file.path) ?? null;
    known.delete(file.path);
    return old?.sha256 === file.sha256 ? [] : [{ path: file.path, before: old, after: file }];
  });
  found.push(...[...known.values()].map((file) => ({ path: file.path, before: file, after: null })));
  return found.toSorted((one, other) => one.path.localeCompare(other.path));
}

interface Props {
  file: Changed;
  before: string;
  after: string;
  open: boolean;
}

const CHANGES = { added: t`added`, removed: t`removed`, changed: t`changed` } as const;

function FileDiff({ file, before, after, open }: Props) {
  const [opened, setOpened] = useState(open);
  const change = file.before === null ? "added" : file.after === null ? "removed" : "changed";
  return (
    <li>
      <details open={opened} onToggle={({ currentTarget }) => setOpened(currentTarget.open)}>
        <summary><span className="badge" data-change={change}>{CHANGES[change]}</span> {file.path}</summary>
        {opened && <Lines file={file} before={before} after={after} />}
      </details>
    </li>
  );
}

function Lines({ file, before, after }: Omit<Props, "open">) {
  const old = useCodeText(before, file.before);
  const now = useCodeText(after, file.after);
  const [first, second] = [textOf(file.before, old.data), textOf(file.after, now.data)];
  const lines = useMemo(
    () => (first === undefined || second === undefined ? undefined : diffLines(first, second)), [first, second],
  );
  const size = Math.max(sizeOf(file.before), sizeOf(file.after));
  if (size > SHOWN_BYTES) {
    return <p className="soft pad"><Trans>{{ size: bytes(size) }} are too much to be shown.</Trans></p>;
  }
  if ([first, second].some((text) => text?.includes("\0"))) {
    return <p className="soft pad"><Trans>This is no text.</Trans></p>;
  }
  return (
    <>
      <Notice error={old.error ?? now.error} />
      {lines === undefined && <p className="soft pad"><Trans>Reading…</Trans></p>}
      {lines === null && <p className="soft pad"><Trans>Only the file’s mode differs.</Trans></p>}
      {lines && <DiffLines lines={lines} label={t`Changes of ${{ path: file.path }}`} />}
    </>
  );
}

function textOf(file: CodeFile | null, text: string | undefined): string | undefined {
  return file === null ? "" : text;
}

function sizeOf(file: CodeFile | null): number {
  return file?.size ?? 0;
}

const SIGN = { same: " ", added: "+", removed: "−", skipped: "" } as const;

/** Lines of a difference, with the numbers they have before and after. */
export function DiffLines({ lines, label }: { lines: readonly DiffLine[]; label: string }) {
  return (
    <div className="diff" tabIndex={0} role="region" aria-label={label}>
      {lines.map((line, at) => (
        <div key={at} data-kind={line.kind}>
          <span className="diff-number">{line.before ?? ""}</span>
          <span className="diff-number">{line.after ?? ""}</span>
          <span className="diff-sign">{SIGN[line.kind]}</span>
          <span className="diff-text">{line.kind === "skipped" ? "⋯" : line.text}</span>
        </div>
      ))}
    </div>
  );
}
