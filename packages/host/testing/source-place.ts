/**
 * Finds a piece of source text however the formatter has broken it into lines: space between
 * tokens, a trailing comma before a closing bracket and a mark after an index do not count.
 */

/** Matches `piece` in a source file. The expression is global: it finds all places. */
function placePattern(piece: string): RegExp {
  const tokens = piece.match(/[\w$]+|[^\s\w$]/g) ?? [];
  let pattern = "";
  tokens.forEach((token, at) => {
    const before = tokens[at - 1];
    if (before !== undefined) {
      const twoWords = /^[\w$]/.test(before) && /^[\w$]/.test(token);
      if (before === "]" && token !== "!") pattern += "!?";
      pattern += twoWords ? "\\s+" : /^[)\]}]$/.test(token) ? "\\s*,?\\s*" : "\\s*";
    }
    pattern += token.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  });
  return new RegExp(pattern, "g");
}

/** How often `piece` stands in `source`. */
export function countPlaces(source: string, piece: string): number {
  return source.match(placePattern(piece))?.length ?? 0;
}

/** `source` with every place of `before` replaced by `after`, taken literally. */
export function replacePlaces(source: string, before: string, after: string): string {
  return source.replace(placePattern(before), () => after);
}
