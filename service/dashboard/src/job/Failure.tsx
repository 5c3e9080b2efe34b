import { t } from "@lingui/core/macro";

import type { Job } from "../api/types";
import { failureWords } from "../lib/failure";
import { sentence } from "../lib/format";
import { Coded } from "../ui/Coded";
import { Copy } from "../ui/Copy";

/** What a failed job says first: the exception, what to do about it, which rank it was, and its own traceback. */
export function Failure({ job }: { job: Job }) {
  const { error } = job;
  if (error === null) return null;
  const { rank, exit_code: code, signal, traceback } = error;
  const { headline, how, advice } = failureWords(error);
  const facts = [
    ...(typeof rank === "number" ? [t`rank ${rank}`] : []),
    ...(typeof code === "number" ? [t`exit code ${code}`] : []),
    ...(typeof signal === "number" ? [t`signal ${signal}`] : []),
  ];
  return (
    <section className="failure" aria-label={t`Failure`}>
      <p className="failure-message"><strong>{how === null ? <Coded text={headline} /> : headline}</strong></p>
      {advice !== null && <p><Coded text={t`${{ advice: sentence(advice) }}.`} /></p>}
      <p className="failure-facts">
        {facts.map((fact) => <span key={fact}>{fact}</span>)}
        {facts.length === 0 && how !== null && <span><Coded text={how} /></span>}
      </p>
      {typeof traceback === "string" && (
        <div className="traceback">
          <Copy text={traceback} />
          <pre tabIndex={0} aria-label={t`Traceback`}>{traceback}</pre>
        </div>
      )}
    </section>
  );
}
