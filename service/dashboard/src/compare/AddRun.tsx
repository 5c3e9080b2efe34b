import { useState } from "react";

import { parseRefs } from "../lib/runs";

/** Adds runs by their numbers; several with commas. */
export function AddRun({ refs, onChange }: { refs: readonly string[]; onChange: (refs: string[]) => void }) {
  const [text, setText] = useState("");
  return (
    <form
      className="compare-add"
      onSubmit={(submit) => {
        submit.preventDefault();
        onChange([...new Set([...refs, ...parseRefs(text)])]);
        setText("");
      }}
    >
      <label>
        <span className="visually-hidden">Numbers of jobs to add</span>
        <input value={text} placeholder="Add runs: 12, 14" onChange={({ target }) => setText(target.value)} />
      </label>
      <button type="submit" className="button" disabled={parseRefs(text).length === 0}>Add</button>
    </form>
  );
}
