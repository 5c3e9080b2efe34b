import { Fragment } from "react";

import { pieces } from "../lib/time";
import { Time } from "./Time";

/** A sentence of the service, with its times in the viewer's zone. */
export function Message({ text, now }: { text: string; now: number }) {
  return pieces(text).map((piece, index) => (
    <Fragment key={index}>{piece.at === null ? piece.text : <Time at={piece.at} near={now} />}</Fragment>
  ));
}
