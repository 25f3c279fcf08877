/**
 * The packages as a picture: which imports which, drawn from the table that test/house checks.
 */
import { arrow, box, picture, text } from "./svg.ts";

/** What each package may import, and what it contains, in lines of at most 24 letters. */
export interface Packages {
  readonly imports: Readonly<Record<string, readonly string[]>>;
  readonly words: Readonly<Record<string, readonly string[]>>;
}

const boxWidth = 168;
const boxHeight = 74;
const gapX = 24;
const gapY = 56;

/**
 * The SVG: each package above all that it imports; an arrow for each import that does not follow
 * from others.
 */
export function packagesPicture({ imports, words }: Packages): string {
  const depths = new Map<string, number>();
  const depth = (name: string): number => {
    const known = depths.get(name);
    if (known !== undefined) return known;
    const found = 1 + Math.max(-1, ...(imports[name] ?? []).map(depth));
    depths.set(name, found);
    return found;
  };
  const rows: string[][] = [];
  for (const name of Object.keys(imports)) (rows[depth(name)] ??= []).push(name);
  const widest = Math.max(...rows.map((row) => row.length));
  const width = widest * (boxWidth + gapX) + gapX;
  const height = rows.length * (boxHeight + gapY) + 40;
  const places = new Map<string, { x: number; y: number }>();
  rows.forEach((row, level) => {
    const left = (width - row.length * (boxWidth + gapX) + gapX) / 2;
    row.forEach((name, i) => {
      places.set(name, {
        x: left + i * (boxWidth + gapX),
        y: 50 + (rows.length - 1 - level) * (boxHeight + gapY),
      });
    });
  });
  const reaches = (from: string, to: string): boolean =>
    imports[from].some((next) => next === to || reaches(next, to));
  const body: string[] = [];
  for (const [name, others] of Object.entries(imports)) {
    for (const other of others.filter(
      (one) => !others.some((via) => via !== one && reaches(via, one)),
    )) {
      const from = places.get(name)!;
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
  for (const [name, { x, y }] of places)
    body.push(box(x, y, boxWidth, boxHeight, name, words[name] ?? [], "#eaf5ea"));
  const title = "Packages: an arrow points to an imported package (implied arrows are left out)";
  return picture(width, height, title, [text(width / 2, 26, title, 'font-size="14"'), ...body]);
}
