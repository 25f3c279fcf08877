/** Colours for a terminal. In a pipe the same text goes out plain. */
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

/** A way to say how a text looks. */
export type Style = keyof typeof codes;

/** Puts texts in colour. */
export type Paint = (text: string, ...styles: Style[]) => string;

/** Nothing is coloured. */
export const plain: Paint = (text) => text;

/**
 * For standard output: colours where it is a terminal that has them, and nobody has asked for none
 * (NO_COLOR, TERM=dumb).
 * @param noColor whether a flag asks for none
 */
export function paintFor({ terminal, env }: Io, noColor = false): Paint {
  const isPlain =
    noColor || terminal === undefined || (env["NO_COLOR"] ?? "") !== "" || env["TERM"] === "dumb";
  return isPlain ? plain : painted;
}

/** Always coloured. */
export function painted(text: string, ...styles: Style[]): string {
  return styles.length === 0 || text === ""
    ? text
    : `\u001b[${styles.map((style) => codes[style]).join(";")}m${text}\u001b[0m`;
}
