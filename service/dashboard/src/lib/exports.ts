import { type Axis, type Table } from "./series";

/** A line of a drawing, with its colour as CSS writes it. */
export interface Drawn {
  label: string;
  color: string;
  column: Table["columns"][number];
}

/** The rows of a chart as CSV; a value that is not there is empty, of a bucket it is the mean. */
export function toCsv(table: Table, labels: readonly string[], axis: Axis | "wall"): string {
  const names = { step: "step", time: "seconds", wall: "unix_time" };
  const rows = table.x.map((x, row) => {
    const marks = table.marks.filter((mark) => mark.x === x);
    const cells = table.columns.map((column, index) => (
      marks.find((mark) => mark.series === index)?.kind ?? column[row] ?? ""
    ));
    return [x, ...cells].join(",");
  });
  return `${[[names[axis], ...labels.map(quoted)].join(","), ...rows].join("\n")}\n`;
}

function quoted(text: string): string {
  // A spreadsheet takes a word that begins like a formula for one.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll("\"", "\"\"")}"` : safe;
}

interface Frame {
  title: string;
  x: readonly number[];
  /** What is in sight. */
  scale: { x: [number, number]; y: [number, number]; log: boolean };
  ticks: { x: { at: number; label: string }[]; y: { at: number; label: string }[] };
  ink: string;
  grid: string;
  ground: string;
}

const [WIDTH, HEIGHT] = [960, 540];
const BOX = { left: 80, top: 48, right: WIDTH - 20, bottom: HEIGHT - 80 };

/** A chart as SVG, with its title, axes and legend. */
export function toSvg(frame: Frame, lines: readonly Drawn[]): string {
  const { scale, ticks, ink, grid } = frame;
  const lift = (value: number) => (scale.log ? Math.log10(value) : value);
  const share = (value: number, [low, high]: [number, number]) => (value - low) / (high - low || 1);
  const placeX = (value: number) => BOX.left + share(value, scale.x) * (BOX.right - BOX.left);
  const bounds: [number, number] = [lift(scale.y[0]), lift(scale.y[1])];
  const placeY = (value: number) => BOX.bottom - share(lift(value), bounds) * (BOX.bottom - BOX.top);
  const text = (x: number, y: number, words: string, anchor: string) => (
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" fill="${ink}">${escaped(words)}</text>`
  );
  const rule = (x1: number, y1: number, x2: number, y2: number) => (
    `<path d="M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}" stroke="${grid}"/>`
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="${frame.ground}"/>`,
    `<clipPath id="box"><rect x="${BOX.left}" y="${BOX.top}" width="${BOX.right - BOX.left}" `,
    `height="${BOX.bottom - BOX.top}"/></clipPath>`,
    text(BOX.left, 28, frame.title, "start"),
    ...ticks.x.map(({ at, label }) => (
      rule(placeX(at), BOX.top, placeX(at), BOX.bottom) + text(placeX(at), BOX.bottom + 20, label, "middle")
    )),
    ...ticks.y.map(({ at, label }) => (
      rule(BOX.left, placeY(at), BOX.right, placeY(at)) + text(BOX.left - 8, placeY(at) + 4, label, "end")
    )),
    ...lines.map(({ color, column }) => (
      `<path clip-path="url(#box)" d="${pathOf(frame.x, column, placeX, placeY)}" fill="none" stroke="${color}" ` +
      "stroke-width=\"1.6\"/>"
    )),
    ...lines.map(({ label, color }, index) => {
      const [x, y] = [BOX.left + (index % 3) * 280, HEIGHT - 36 + Math.floor(index / 3) * 18];
      return `<rect x="${x}" y="${y - 6}" width="14" height="4" fill="${color}"/>${text(x + 20, y, label, "start")}`;
    }),
    "</svg>",
  ].join("");
}

/** The path of a line: null breaks it, undefined is passed over. */
function pathOf(
  x: readonly number[], column: Drawn["column"], placeX: (x: number) => number, placeY: (y: number) => number,
): string {
  let pen = "M";
  let path = "";
  column.forEach((value, row) => {
    if (value === undefined) return;
    if (value === null) {
      pen = "M";
      return;
    }
    path += `${pen}${placeX(x[row] ?? 0).toFixed(1)} ${placeY(value).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
