import { type ReactNode, useId } from "react";

interface Props {
  title: string;
  tools?: ReactNode;
  children: ReactNode;
  className?: string;
}

export function Panel({ title, tools, children, className = "" }: Props) {
  const heading = useId();
  return (
    <section className={`panel ${className}`} aria-labelledby={heading}>
      <header className="panel-head">
        <h2 id={heading}>{title}</h2>
        {tools !== undefined && <div className="panel-tools">{tools}</div>}
      </header>
      {children}
    </section>
  );
}
