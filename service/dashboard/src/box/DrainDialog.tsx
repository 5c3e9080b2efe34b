import { useState } from "react";

import { useDrain } from "../api/box";
import { Dialog } from "../ui/Dialog";
import { Field } from "../ui/Field";
import { Notice } from "../ui/Notice";
import { Segments } from "../ui/Segments";

const RUNNING = [{ key: "on", label: "Go on" }, { key: "stop", label: "Save and wait elsewhere" }] as const;

/** Asks why a node takes no new jobs, and what becomes of those that run there. */
export function DrainDialog({ node, onClose }: { node: string; onClose: () => void }) {
  const [message, setMessage] = useState("");
  const [running, setRunning] = useState<"on" | "stop">("on");
  const drain = useDrain();
  return (
    <Dialog
      title={`Drain ${node}?`}
      confirm="Drain"
      busy={drain.isPending}
      onConfirm={() => drain.mutate(
        { name: node, message: message.trim(), stopJobs: running === "stop" },
        { onSuccess: onClose },
      )}
      onClose={onClose}
    >
      <p>No new job starts here until it is resumed. For a set time, reserve a maintenance on the page Sharing.</p>
      <Field
        label="Why"
        maxLength={500}
        placeholder="new fan, back at 18:00"
        value={message}
        onChange={setMessage}
        hint="Whoever waits for this node reads it."
      />
      <div className="field">
        <p>Jobs that run here</p>
        <Segments label="Jobs that run here" options={RUNNING} value={running} onChange={setRunning} />
      </div>
      <Notice error={drain.error} />
    </Dialog>
  );
}
