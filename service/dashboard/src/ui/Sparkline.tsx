import { sparkPath } from "../lib/spark";

/** The last minutes of a value, drawn small; the words beside it carry the number. */
export function Sparkline({ values, top }: { values: readonly number[]; top: number }) {
  if (values.length < 2) return <span className="spark" />;
  return (
    <svg className="spark" viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true">
      <path className="spark-area" d={`${sparkPath(values, top, 100, 24)} L100 24 L0 24 Z`} />
      <path className="spark-line" d={sparkPath(values, top, 100, 24)} />
    </svg>
  );
}
