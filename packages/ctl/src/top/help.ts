/** The help of top, in the place of the frame. */
import type { Paint } from "../terminal.ts";
import { cellText, views } from "./columns.ts";
import type { FrameSize } from "./frame.ts";
import { keyHelp, type ScreenState } from "./keys.ts";
import { boxed, cutLine, type Line, shownLine, span } from "./line.ts";

/** Keys, the columns of the table in view, and from which values on they are coloured. */
export function helpFrame({ view }: ScreenState, size: FrameSize, paint: Paint): string[] {
  const { name, columns } = views[view];
  const keys = keyHelp.map(
    ([key, what]): Line => [span(key.padEnd(13), "bold", "cyan"), span(what)],
  );
  const titles = columns.map((column): Line => {
    const { title, doc, limits } = column;
    const marks =
      limits === undefined
        ? []
        : [
            span("  "),
            span(cellText(column, limits[0]), "yellow"),
            span(" "),
            span(cellText(column, limits[1]), "red"),
          ];
    return [span(title.padEnd(10), "bold"), span(doc), ...marks];
  });
  const about: Line[] = [
    [
      span(
        "A member that does not answer is dimmed; its figures are those of its last answer.",
        "dim",
      ),
    ],
    [span("Yellow and red begin at the values beside each column. Any key leads back.", "dim")],
  ];
  const width = Math.min(size.columns, 100);
  const lines = [
    ...boxed("keys", "", keys, width),
    ...boxed(`columns of ${name}`, "", titles, width),
    ...about,
  ];
  return lines.slice(0, size.rows).map((line) => shownLine(cutLine(line, size.columns), paint));
}
