import { fileUrl, useOutputs } from "../api/jobs";
import type { Job } from "../api/types";
import { bytes } from "../lib/format";
import { Panel } from "../ui/Panel";

/** What the job left in its output folder; nothing is shown while there is nothing. */
export function Outputs({ job }: { job: Job }) {
  const outputs = useOutputs(job).data ?? [];
  if (outputs.length === 0) return null;
  return (
    <Panel title="Outputs">
      <ul className="files">
        {outputs.map((output) => (
          <li key={output.name}>
            <a href={fileUrl("jobs", job.id, "outputs", output.name)} download>{output.name}</a>
            <span className="num faint">{bytes(output.size)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
