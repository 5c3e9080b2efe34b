import { t } from "@lingui/core/macro";
import { useMemo, useState } from "react";
import { stringify } from "yaml";

import { Copy } from "../ui/Copy";
import { Panel } from "../ui/Panel";
import { Segments } from "../ui/Segments";

const FORMATS = [{ key: "yaml", label: "YAML" }, { key: "json", label: "JSON" }] as const;

export function Spec({ spec }: { spec: Record<string, unknown> }) {
  const [format, setFormat] = useState<"yaml" | "json">("yaml");
  const text = useMemo(
    () => (format === "yaml" ? stringify(withoutNulls(spec)) : JSON.stringify(spec, null, 2)),
    [spec, format],
  );
  const tools = (
    <>
      <Segments label={t`Format`} options={FORMATS} value={format} onChange={setFormat} />
      <Copy text={text} />
    </>
  );
  return (
    <Panel title={t`Spec`} tools={tools}>
      <pre className="spec" tabIndex={0} aria-label={t`Job spec`}>{text}</pre>
    </Panel>
  );
}

/** What a person would write: fields that are not set are left out. */
function withoutNulls(spec: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== null));
}
