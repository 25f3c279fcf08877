/**
 * A way through the house as a picture: lanes from left to right, time from top to bottom. It is
 * written as text:
 *
 *     title A write
 *     lanes client | rpc | server
 *     client -> rpc: Put            an arrow from lane to lane
 *     rpc => server: bytes          a dashed one: what does not hold up the way
 *     note server: one batch        a box over a lane
 */
import { arrow, box, picture, text } from "./svg.ts";

const laneWidth = 184;
const stepHeight = 34;
const top = 84;

/** The SVG of such a text. Throws with the line that it cannot read. */
export function sequencePicture(source: string): string {
  let title = "";
  let lanes: string[] = [];
  const body: string[] = [];
  let y = top;
  const centre = (name: string, line: string): number => {
    const at = lanes.indexOf(name.trim());
    if (at === -1) throw new Error(`no lane "${name.trim()}" in: ${line}`);
    return 20 + laneWidth * (at + 0.5);
  };
  for (const line of source.split("\n").filter((one) => one.trim() !== "")) {
    const step = /^([^>]+) (->|=>) ([^:]+): (.+)$/.exec(line);
    const note = /^note ([^:]+): (.+)$/.exec(line);
    if (line.startsWith("title ")) title = line.slice(6);
    else if (line.startsWith("lanes "))
      lanes = line
        .slice(6)
        .split("|")
        .map((name) => name.trim());
    else if (note !== null) {
      y += stepHeight;
      const width = Math.max(laneWidth - 20, note[2].length * 6.4 + 16);
      const x = Math.min(
        Math.max(centre(note[1], line) - width / 2, 6),
        34 + laneWidth * lanes.length - width,
      );
      body.push(
        `<rect x="${x}" y="${y - 19}" width="${width}" height="25" rx="3" fill="#fdf3d0" stroke="#c9a94a"/>`,
      );
      body.push(text(x + width / 2, y - 2, note[2], 'font-size="12"'));
    } else if (step !== null) {
      y += stepHeight;
      const from = centre(step[1], line);
      const to = centre(step[3], line);
      body.push(arrow(`M${from},${y} L${to},${y}`, step[2] === "=>"));
      body.push(
        text(
          (from + to) / 2,
          y - 6,
          step[4],
          'font-size="12" stroke="#fff" stroke-width="4" paint-order="stroke"',
        ),
      );
    } else throw new Error(`not a title, lanes, a note or an arrow: ${line}`);
  }
  const height = y + 30;
  const heads = lanes.flatMap((name, i) => {
    const x = 20 + laneWidth * i;
    return [
      `<path d="M${x + laneWidth / 2},${top - 10} L${x + laneWidth / 2},${height - 10}" stroke="#bbc" stroke-dasharray="2 3"/>`,
      box(x + 12, top - 40, laneWidth - 24, 30, name, [], "#e7eefc"),
    ];
  });
  const width = 40 + laneWidth * lanes.length;
  return picture(width, height, title, [
    text(width / 2, 26, title, 'font-size="16" font-weight="bold"'),
    ...heads,
    ...body,
  ]);
}
