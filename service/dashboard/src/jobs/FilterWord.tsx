interface Props {
  label: string;
  title: string;
  tag?: boolean;
  onClick: () => void;
}

/** A word of a row that narrows the list to rows that have it. */
export function FilterWord({ label, title, tag = false, onClick }: Props) {
  return <button type="button" className={tag ? "tag" : "plain"} title={title} onClick={onClick}>{label}</button>;
}
