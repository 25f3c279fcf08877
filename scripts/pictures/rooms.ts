/**
 * The rooms of the house as a picture: who imports whom, drawn from the very table that the house's
 * test holds.
 */
import { arrow, box, picture, text } from "./svg.ts";

/** What each room may import, and what it does, in a few words of at most 24 letters a line. */
export interface Rooms {
  readonly imports: Readonly<Record<string, readonly string[]>>;
  readonly words: Readonly<Record<string, readonly string[]>>;
}

const boxWidth = 168;
const boxHeight = 74;
const gapX = 24;
const gapY = 56;

/**
 * The SVG: each room above all that it imports; an arrow for each import that does not follow from
 * others.
 */
export function roomsPicture({ imports, words }: Rooms): string {
  const depths = new Map<string, number>();
  const depth = (room: string): number => {
    const known = depths.get(room);
    if (known !== undefined) return known;
    const found = 1 + Math.max(-1, ...(imports[room] ?? []).map(depth));
    depths.set(room, found);
    return found;
  };
  const rows: string[][] = [];
  for (const room of Object.keys(imports)) (rows[depth(room)] ??= []).push(room);
  const widest = Math.max(...rows.map((row) => row.length));
  const width = widest * (boxWidth + gapX) + gapX;
  const height = rows.length * (boxHeight + gapY) + 40;
  const places = new Map<string, { x: number; y: number }>();
  rows.forEach((row, level) => {
    const left = (width - row.length * (boxWidth + gapX) + gapX) / 2;
    row.forEach((room, i) => {
      places.set(room, {
        x: left + i * (boxWidth + gapX),
        y: 50 + (rows.length - 1 - level) * (boxHeight + gapY),
      });
    });
  });
  const reaches = (from: string, to: string): boolean =>
    imports[from].some((next) => next === to || reaches(next, to));
  const body: string[] = [];
  for (const [room, others] of Object.entries(imports)) {
    for (const other of others.filter(
      (one) => !others.some((via) => via !== one && reaches(via, one)),
    )) {
      const from = places.get(room)!;
      const to = places.get(other)!;
      const [x1, y1, x2, y2] = [
        from.x + boxWidth / 2,
        from.y + boxHeight,
        to.x + boxWidth / 2,
        to.y,
      ];
      body.push(
        arrow(`M${x1},${y1} C${x1},${y1 + gapY * 0.8} ${x2},${y2 - gapY * 0.8} ${x2},${y2 - 1}`),
      );
    }
  }
  for (const [room, { x, y }] of places)
    body.push(box(x, y, boxWidth, boxHeight, room, words[room] ?? [], "#eaf5ea"));
  const title =
    "Rooms: an arrow points to what is imported, where that does not follow from other arrows";
  return picture(width, height, title, [text(width / 2, 26, title, 'font-size="14"'), ...body]);
}
