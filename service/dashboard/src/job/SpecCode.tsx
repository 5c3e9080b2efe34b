import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useState } from "react";

import { SHOWN_BYTES, useCode, useCodeText } from "../api/compare";
import { fileUrl } from "../api/jobs";
import type { CodeFile, Job } from "../api/types";
import { CodeDiff } from "../compare/CodeDiff";
import { bytes } from "../lib/format";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";

const VIEWS = [
  { key: "files", label: t`Files` }, { key: "changes", label: t`Changes since the job before` },
] as const;

/** The files that a job was submitted with, and what differs from those of the job that it is a rerun of. */
export function SpecCode({ job }: { job: Job }) {
  const [own, before] = useCode(job.rerun_of === null ? [job.id] : [job.id, job.rerun_of]);
  const [view, setView] = useState<"files" | "changes">("files");
  const parent = before?.data && job.rerun_of !== null ? { job: job.rerun_of, files: before.data } : null;
  return (
    <Panel
      title={t`Code`}
      tools={parent !== null && <Segments label={t`Show`} options={VIEWS} value={view} onChange={setView} />}
    >
      <Notice error={own?.error} />
      {own?.data && (view === "changes" && parent !== null
        ? <CodeDiff before={parent} after={{ job: job.id, files: own.data }} />
        : <Browser job={job} files={own.data} />)}
    </Panel>
  );
}

/** A list of files, and the one that is chosen: the script of the command, until another is. */
function Browser({ job, files }: { job: Job; files: readonly CodeFile[] }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const [words, setWords] = useState("");
  const command = (job.spec.command ?? []) as unknown[];
  const of = (holds: (path: string) => boolean) => files.find(({ path }) => holds(path));
  const file = of((path) => path === chosen) ?? of((path) => command.includes(path)) ?? files[0];
  const shown = files.filter(({ path }) => path.toLowerCase().includes(words.toLowerCase()));
  if (files.length === 0) {
    return <p className="soft pad"><Trans>This job was submitted without a snapshot of its code.</Trans></p>;
  }
  return (
    <div className="code-browser">
      <div className="code-files">
        <input
          type="search"
          aria-label={t`Filter files`}
          placeholder={plural({ count: files.length }, { one: "# file", other: "# files" })}
          value={words}
          onChange={({ target }) => setWords(target.value)}
        />
        <ul tabIndex={0} aria-label={t`Files of the code`}>
          {shown.slice(0, 500).map(({ path }) => (
            <li key={path}>
              <button type="button" aria-pressed={path === file?.path} onClick={() => setChosen(path)}>{path}</button>
            </li>
          ))}
          {shown.length > 500 && (
            <li className="faint pad"><Trans>and {{ count: shown.length - 500 }} more: filter them</Trans></li>
          )}
        </ul>
      </div>
      {file !== undefined && <FileText key={file.path} job={job.id} file={file} />}
    </div>
  );
}

function FileText({ job, file }: { job: string; file: CodeFile }) {
  const text = useCodeText(job, file);
  const lines = text.data?.split("\n") ?? [];
  return (
    <div className="code-file">
      <p>
        <b>{file.path}</b> <span className="faint num">{bytes(file.size)}</span>
        <a className="button small" href={fileUrl("jobs", job, "code", file.path)} download><Trans>Download</Trans></a>
      </p>
      <Notice error={text.error} />
      {file.size > SHOWN_BYTES || text.data?.includes("\0")
        ? <p className="soft pad"><Trans>This is no text that can be shown.</Trans></p>
        : (
            <div className="code-text" tabIndex={0} role="region" aria-label={file.path}>
              <pre aria-hidden="true">{lines.map((_, at) => `${at + 1}\n`).join("")}</pre>
              <pre>{text.data}</pre>
            </div>
          )}
    </div>
  );
}
