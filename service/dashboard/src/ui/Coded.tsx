import { Fragment } from "react";

import { quoted } from "../lib/quoted";

/** A sentence of the service, in which commands and settings that it quotes are shown as code. */
export function Coded({ text }: { text: string }) {
  return quoted(text).map((piece, index) => (
    <Fragment key={index}>{piece.code ? <code>{piece.text}</code> : piece.text}</Fragment>
  ));
}
