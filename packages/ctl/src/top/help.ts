/** The help screen of top. */
import type { Paint } from "@quorate/cli";
import { cellText, views } from "./columns.ts";
import type { FrameSize } from "./frame.ts";
import { keyHelp, type ScreenState } from "./keys.ts";
import { boxed, cutLine, type Line, shownLine, span } from "./line.ts";

/** Keys, the columns of the table in view, and their thresholds. */
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
    [span("A silent member is dimmed; its figures are from its last response.", "dim")],
    [span("Yellow and red start at the values beside each column. Any key goes back.", "dim")],
  ];
  const width = Math.min(size.columns, 100);
  const lines = [
    ...boxed("keys", "", keys, width),
    ...boxed(`columns of ${name}`, "", titles, width),
    ...about,
  ];
  return lines.slice(0, size.rows).map((line) => shownLine(cutLine(line, size.columns), paint));
}
