import { Copy } from "./Copy";

/** A shell command to take along. */
export function Command({ text }: { text: string }) {
  return (
    <div className="command">
      <code>{text}</code>
      <Copy text={text} />
    </div>
  );
}
