import { Trans } from "@lingui/react/macro";
import { useId, useRef } from "react";

import type { SpecText } from "../lib/specText";

/** The spec as text, whatever is typed there; where it is no YAML, the line is told. */
export function YamlBox({ read, onText }: { read: SpecText; onText: (text: string) => void }) {
  const [id, about] = [useId(), useId()];
  const ref = useRef<HTMLTextAreaElement>(null);
  const { text, fault } = read;
  return (
    <div className="field yaml-box">
      <label htmlFor={id} className="hidden-words"><Trans>Spec as YAML</Trans></label>
      <textarea
        ref={ref}
        id={id}
        value={text}
        rows={Math.max(14, Math.min(36, text.split("\n").length + 1))}
        spellCheck={false}
        autoComplete="off"
        autoCapitalize="off"
        wrap="off"
        aria-invalid={fault !== null}
        aria-describedby={about}
        onChange={({ target }) => onText(target.value)}
      />
      <div id={about} role="status">
        {fault !== null && (
          <p className="complaint">
            <Fault fault={fault} onSelect={() => select(ref.current, fault.line)} />
          </p>
        )}
      </div>
    </div>
  );
}

function Fault({ fault: { line, message }, onSelect }: { fault: NonNullable<SpecText["fault"]>; onSelect: () => void }) {
  return (
    <Trans>
      <button type="button" className="plain" onClick={onSelect}>Line {line}</button>: {message}. The form waits until it
      is mended; nothing that was typed is lost.
    </Trans>
  );
}

/** Selects a line, counted from 1. */
function select(box: HTMLTextAreaElement | null, line: number): void {
  const before = box?.value.split("\n").slice(0, line - 1).reduce((length, each) => length + each.length + 1, 0) ?? 0;
  const end = box?.value.indexOf("\n", before) ?? -1;
  box?.focus();
  box?.setSelectionRange(before, end < 0 ? box.value.length : end);
}
