import type { Job } from "../api/types";
import { Copy } from "../ui/Copy";

/** What a failed job says first: which rank, how, and its own traceback. */
export function Failure({ job }: { job: Job }) {
  const { error } = job;
  if (error === null) return null;
  const { rank, exit_code: code, signal, traceback } = error;
  const facts = [["rank", rank], ["exit code", code], ["signal", signal]]
    .filter(([, value]) => typeof value === "number")
    .map(([name, value]) => `${name ?? ""} ${value ?? ""}`);
  return (
    <section className="failure" aria-label="Failure">
      <p className="failure-message"><strong>{error.message}</strong></p>
      {facts.length > 0 && <p className="failure-facts">{facts.map((fact) => <span key={fact}>{fact}</span>)}</p>}
      {typeof traceback === "string" && (
        <div className="traceback">
          <Copy text={traceback} />
          <pre tabIndex={0} aria-label="Traceback">{traceback}</pre>
        </div>
      )}
    </section>
  );
}
