import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";

import { fileUrl, useBringOutputs, useOutputs } from "../api/jobs";
import { useMayChange } from "../api/session";
import type { Job, Output } from "../api/types";
import { type FileNode, type FileTree, fileTrees } from "../lib/files";
import { bytes } from "../lib/format";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";

/** So many files are shown at once; folders of more are closed at first. */
const OPEN_FILES = 25;

const FOLDERS: Record<Output["root"], string> = {
  output: t`Output folder ($TORCHYARD_OUTPUT_DIR)`,
  code: t`Working folder`,
  job: t`Beside the working folder (../)`,
};

/** The files that the job has written, as a tree; nothing is shown while there are none. */
export function Outputs({ job }: { job: Job }) {
  const outputs = useOutputs(job).data ?? [];
  const live = typeof job.spec.live === "string";
  if (outputs.length === 0 && !live) return null;
  const trees = fileTrees(outputs);
  const open = outputs.length <= OPEN_FILES;
  return (
    <Panel title={t`Outputs`} tools={<Tools job={job} outputs={outputs} trees={trees} />}>
      {live && <p className="soft pad">{LIVE}</p>}
      {trees.map((tree) => (
        <div key={`${tree.root} ${tree.node}`} className="file-tree">
          {(trees.length > 1 || tree.root !== "output") && (
            <h3><FolderName folder={FOLDERS[tree.root]} node={tree.node} /></h3>
          )}
          <Children job={job} node={tree.top} open={open} />
        </div>
      ))}
    </Panel>
  );
}

const LIVE = t`The job works in a folder of its own on the node (live): what it writes there stays there. Only what lies in $TORCHYARD_OUTPUT_DIR is kept here.`;

function FolderName({ folder, node }: { folder: string; node: string | null }) {
  return node === null ? folder : <Trans>{folder} <span className="faint">on {node}</span></Trans>;
}

function Tools({ job, outputs, trees }: { job: Job; outputs: readonly Output[]; trees: readonly FileTree[] }) {
  const bring = useBringOutputs();
  const mine = useMayChange(job);
  const left = outputs.filter((output) => output.state === "on-node");
  const count = trees.reduce((all, tree) => all + tree.top.count, 0);
  const size = trees.reduce((all, tree) => all + tree.top.size, 0);
  return (
    <>
      {count > 0 && <span className="faint">{amountOf(count, size)}</span>}
      {mine && left.length > 0 && (
        <button
          type="button"
          className="button small"
          disabled={bring.isPending || left.every((output) => output.wanted)}
          onClick={() => bring.mutate(job.id)}
        >
          {left.every((output) => output.wanted) ? t`On their way` : toFetch(left.length)}
        </button>
      )}
      <Notice error={bring.error} />
    </>
  );
}

function amountOf(count: number, size: number): string {
  const all = bytes(size);
  return plural(count, { one: `# file, ${all}`, other: `# files, ${all}` });
}

function toFetch(count: number): string {
  return plural(count, { one: "Fetch # file from the node", other: "Fetch # files from the node" });
}

function Children({ job, node, open }: { job: Job; node: FileNode; open: boolean }) {
  return (
    <ul className="files">
      {node.children.map((child) => (
        <li key={child.name}>
          {child.file === null
            ? <Folder job={job} node={child} open={open} />
            : <File job={job} name={child.name} file={child.file} />}
        </li>
      ))}
    </ul>
  );
}

function Folder({ job, node, open }: { job: Job; node: FileNode; open: boolean }) {
  return (
    <details open={open}>
      <summary>
        {node.name}/ <span className="num faint">{amountOf(node.count, node.size)}</span>
      </summary>
      <Children job={job} node={node} open={open} />
    </details>
  );
}

function File({ job, name, file }: { job: Job; name: string; file: Output }) {
  const place = new URLSearchParams({ root: file.root, node_rank: String(file.node_rank) });
  const url = `${fileUrl("jobs", job.id, "outputs", file.name)}?${place}`;
  return (
    <div className="file">
      {file.state === "stored"
        ? <a href={url} aria-label={file.name} download>{name}</a>
        : <span className={file.state === "deleted" ? "deleted" : ""}>{name}</span>}
      <State file={file} />
      {file.state !== "deleted" && <span className="num faint">{bytes(file.size)}</span>}
    </div>
  );
}

function State({ file }: { file: Output }) {
  if (file.state === "deleted") return <span className="badge"><Trans>deleted by the job</Trans></span>;
  if (file.state === "arriving") return <span className="badge committed"><Trans>arriving</Trans></span>;
  if (file.state === "on-node") {
    return <span className="badge committed" title={file.place ?? ""}>{onNode(file)}</span>;
  }
  if (file.baseline === null) return null;
  return <span className="badge" title={t`It was submitted with the job`}><Trans>changed</Trans></span>;
}

function onNode(file: Output): string {
  const node = file.node ?? t`its node`;
  return file.wanted ? t`on its way from ${node}` : t`too large: stays on ${node}`;
}
