import { fileUrl, useBringOutputs, useOutputs } from "../api/jobs";
import { useMayChange } from "../api/session";
import type { Job, Output } from "../api/types";
import { type FileNode, type FileTree, fileTrees } from "../lib/files";
import { bytes, plural } from "../lib/format";
import { Notice } from "../ui/Notice";
import { Panel } from "../ui/Panel";

/** So many files are shown at once; folders of more are closed at first. */
const OPEN_FILES = 25;

const FOLDERS: Record<Output["root"], string> = {
  output: "Output folder ($TORCHYARD_OUTPUT_DIR)",
  code: "Working folder",
  job: "Beside the working folder (../)",
};

/** The files that the job has written, as a tree; nothing is shown while there are none. */
export function Outputs({ job }: { job: Job }) {
  const outputs = useOutputs(job).data ?? [];
  const live = typeof job.spec.live === "string";
  if (outputs.length === 0 && !live) return null;
  const trees = fileTrees(outputs);
  const open = outputs.length <= OPEN_FILES;
  return (
    <Panel title="Outputs" tools={<Tools job={job} outputs={outputs} trees={trees} />}>
      {live && <p className="soft pad">{LIVE}</p>}
      {trees.map((tree) => (
        <div key={`${tree.root} ${tree.node}`} className="file-tree">
          {(trees.length > 1 || tree.root !== "output") && (
            <h3>{FOLDERS[tree.root]}{tree.node !== null && <span className="faint"> on {tree.node}</span>}</h3>
          )}
          <Children job={job} node={tree.top} open={open} />
        </div>
      ))}
    </Panel>
  );
}

const LIVE = "The job works in a folder of its own on the node (live): what it writes there stays there. Only what lies " +
  "in $TORCHYARD_OUTPUT_DIR is kept here.";

function Tools({ job, outputs, trees }: { job: Job; outputs: readonly Output[]; trees: readonly FileTree[] }) {
  const bring = useBringOutputs();
  const mine = useMayChange(job);
  const left = outputs.filter((output) => output.state === "on-node");
  const count = trees.reduce((all, tree) => all + tree.top.count, 0);
  const size = trees.reduce((all, tree) => all + tree.top.size, 0);
  return (
    <>
      {count > 0 && <span className="faint">{plural(count, "file")}, {bytes(size)}</span>}
      {mine && left.length > 0 && (
        <button
          type="button"
          className="button small"
          disabled={bring.isPending || left.every((output) => output.wanted)}
          onClick={() => bring.mutate(job.id)}
        >
          {left.every((output) => output.wanted) ? "On their way" : `Fetch ${plural(left.length, "file")} from the node`}
        </button>
      )}
      <Notice error={bring.error} />
    </>
  );
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
        {node.name}/ <span className="num faint">{plural(node.count, "file")}, {bytes(node.size)}</span>
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
  if (file.state === "deleted") return <span className="badge">deleted by the job</span>;
  if (file.state === "arriving") return <span className="badge committed">arriving</span>;
  if (file.state === "on-node") {
    return <span className="badge committed" title={file.place ?? ""}>{onNode(file)}</span>;
  }
  return file.baseline === null ? null : <span className="badge" title="It was submitted with the job">changed</span>;
}

function onNode(file: Output): string {
  return file.wanted ? `on its way from ${file.node ?? "its node"}` : `too large: stays on ${file.node ?? "its node"}`;
}
