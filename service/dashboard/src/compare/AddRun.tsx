import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
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
        <span className="visually-hidden"><Trans>Numbers of jobs to add</Trans></span>
        <input value={text} placeholder={t`Add runs: 12, 14`} onChange={({ target }) => setText(target.value)} />
      </label>
      <button type="submit" className="button" disabled={parseRefs(text).length === 0}><Trans>Add</Trans></button>
    </form>
  );
}
