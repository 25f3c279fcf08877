/** Sparklines and graphs of block characters. */

const EIGHTHS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/** The greatest known value; 0 if there is none. */
export function peak(values: readonly number[]): number {
  return values.reduce((most, value) => (value > most ? value : most), 0);
}

/**
 * One character per value, the newest last, `width` in all; a blank for an unknown value.
 * @param top the value that fills a character; default the greatest value
 */
export function sparkline(values: readonly number[], width: number, top = peak(values)): string {
  const shown = values.slice(-width).map((value) => {
    if (Number.isNaN(value)) return " ";
    if (!(top > 0)) return EIGHTHS[0];
    return EIGHTHS[Math.min(7, Math.max(0, Math.ceil((value / top) * 8) - 1))];
  });
  return shown.join("").padStart(width);
}

/** A column per value in `height` lines, from the top. */
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
      // A known zero has a thin line at the bottom.
      return here > 0 ? EIGHTHS[here - 1] : floor === 0 ? EIGHTHS[0] : " ";
    });
    return cells.join("").padStart(width);
  });
}
