/** The few shapes that the pictures of docs/ are made of, as SVG text. All lengths are pixels. */
import { escapeHtml } from "@quorate/proto";

/**
 * The body of a picture within its frame: a white ground, so that it can be read on a dark page as
 * well.
 */
export function picture(
  width: number,
  height: number,
  title: string,
  body: readonly string[],
): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img"`,
    `  font-family="system-ui, sans-serif" font-size="13">`,
    `<title>${escapeHtml(title)}</title>`,
    `<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">`,
    `<path d="M0,0 L8,4 L0,8 z" fill="#334"/></marker></defs>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...body,
    "</svg>",
    "",
  ].join("\n");
}

/** A box with a bold name and, under it, smaller lines. */
export function box(
  x: number,
  y: number,
  width: number,
  height: number,
  name: string,
  lines: readonly string[],
  fill: string,
): string {
  const middle = x + width / 2;
  return [
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${fill}" stroke="#667"/>`,
    text(middle, y + (lines.length === 0 ? height / 2 + 5 : 20), name, 'font-weight="bold"'),
    ...lines.map((line, i) => text(middle, y + 37 + 15 * i, line, 'font-size="11" fill="#334"')),
  ].join("\n");
}

/** Centred text, with more attributes if given. */
export function text(x: number, y: number, content: string, attributes = ""): string {
  return `<text x="${x}" y="${y}" text-anchor="middle"${attributes === "" ? "" : ` ${attributes}`}>${escapeHtml(content)}</text>`;
}

/** A path with an arrow's tip at its end. */
export function arrow(path: string, dashed = false): string {
  return `<path d="${path}" fill="none" stroke="#334"${dashed ? ' stroke-dasharray="4 3"' : ""} marker-end="url(#tip)"/>`;
}
