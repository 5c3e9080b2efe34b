/** A measured share from 0 to 1 with its words; null where it cannot be measured. */
export function Meter({ label, share, words }: { label: string; share: number | null; words: string }) {
  const percent = share === null ? 0 : Math.min(100, Math.max(0, share * 100));
  return (
    <div className="meter">
      <span className="meter-label">{label}</span>
      <div
        className="meter-bar"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(percent)}
        aria-valuetext={words}
      >
        <div style={{ width: `${percent}%` }} />
      </div>
      <span className="meter-words">{words}</span>
    </div>
  );
}
