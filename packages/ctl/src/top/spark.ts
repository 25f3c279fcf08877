/** Small pictures of how figures went, made of block characters. */

const EIGHTHS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/** The greatest of the values that are known; 0 if none is. */
export function peak(values: readonly number[]): number {
  return values.reduce((most, value) => (value > most ? value : most), 0);
}

/**
 * One character for each value, the newest last, `width` of them; a blank where nothing was known.
 * @param top the value that fills a character; the greatest of the values unless told
 */
export function sparkline(values: readonly number[], width: number, top = peak(values)): string {
  const shown = values.slice(-width).map((value) => {
    if (Number.isNaN(value)) return " ";
    if (!(top > 0)) return EIGHTHS[0];
    return EIGHTHS[Math.min(7, Math.max(0, Math.ceil((value / top) * 8) - 1))];
  });
  return shown.join("").padStart(width);
}

/** A column for each value in `height` lines, the topmost first. */
export function graph(
  values: readonly number[],
  width: number,
  height: number,
  top = peak(values),
): string[] {
  const shown = values.slice(-width);
  return Array.from({ length: height }, (_, line) => {
    const floor = (height - 1 - line) * 8;
    const cells = shown.map((value) => {
      const eighths = Number.isNaN(value) || !(top > 0) ? 0 : Math.ceil((value / top) * height * 8);
      const here = eighths - floor;
      if (Number.isNaN(value)) return " ";
      if (here >= 8) return EIGHTHS[7];
      // What is known to be nothing has a thin line at the bottom.
      return here > 0 ? EIGHTHS[here - 1] : floor === 0 ? EIGHTHS[0] : " ";
    });
    return cells.join("").padStart(width);
  });
}
