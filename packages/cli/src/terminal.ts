/** Colours for a terminal. In a pipe the text stays plain. */
import type { Io } from "./io.ts";

const codes = {
  bold: 1,
  dim: 2,
  inverse: 7,
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  magenta: 35,
  cyan: 36,
} as const;

/** The look of a text. */
export type Style = keyof typeof codes;

/** Applies styles to a text. */
export type Paint = (text: string, ...styles: Style[]) => string;

/** Applies no styles. */
export const plain: Paint = (text) => text;

/**
 * The Paint for standard output: with colours on a terminal, unless NO_COLOR or TERM=dumb is set.
 * @param noColor whether a flag disables colours
 */
export function paintFor({ terminal, env }: Io, noColor = false): Paint {
  const isPlain =
    noColor || terminal === undefined || (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  return isPlain ? plain : painted;
}

/** Applies styles as escape sequences. */
export function painted(text: string, ...styles: Style[]): string {
  return styles.length === 0 || text === ""
    ? text
    : `\u001b[${styles.map((style) => codes[style]).join(";")}m${text}\u001b[0m`;
}
