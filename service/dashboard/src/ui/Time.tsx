import { exactly, hour, moment } from "../lib/time";

interface Props {
  /** RFC 3339. */
  at: string;
  /** Write it to the minute, as near this moment as it is; without it, to the second. */
  near?: number;
  /** What stands for it, such as an age. */
  children?: string;
}

/** A time in the viewer's zone, which is named on hover. */
export function Time({ at, near, children }: Props) {
  return (
    <time dateTime={at} title={exactly(at)}>
      {children ?? (near === undefined ? moment(at) : hour(at, near))}
    </time>
  );
}
