import { Fragment } from "react";

import { pieces } from "../lib/time";
import { Coded } from "./Coded";
import { Time } from "./Time";

/** A sentence of the service, with its times in the viewer's zone and what it quotes as code. */
export function Message({ text, now }: { text: string; now: number }) {
  return pieces(text).map((piece, index) => (
    <Fragment key={index}>
      {piece.at === null ? <Coded text={piece.text} /> : <Time at={piece.at} near={now} />}
    </Fragment>
  ));
}
