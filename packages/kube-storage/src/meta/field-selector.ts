/**
 * Field selectors as texts (apimachinery: fields/selector.go).
 *
 *     metadata.name=app,status.phase!=Running
 *
 * "\" before "\", "," and "=" in a value takes away their meaning.
 */
import { SelectorSyntaxError } from "./label-requirement.ts";
import { EVERYTHING, type Selector } from "./selectors.ts";

interface Term {
  readonly field: string;
  readonly value: string;
  readonly equal: boolean;
}

/** The texts between commas that are not escaped. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === ",") {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

function unescaped(text: string): string {
  let value = "";
  const characters = [...text];
  for (let at = 0; at < characters.length; at++) {
    const character = characters[at];
    if (character === "," || character === "=") {
      const code = character.codePointAt(0);
      throw new SelectorSyntaxError(
        `invalid field selector: unescaped character in value: ${code}`,
      );
    }
    if (character !== "\\") value += character;
    else {
      const next = characters[++at] ?? "";
      if (next === "" || !"\\,=".includes(next)) {
        const sequence = `\\${next}`;
        throw new SelectorSyntaxError(
          `invalid field selector: invalid escape sequence: ${sequence}`,
        );
      }
      value += next;
    }
  }
  return value;
}

function parseTerm(term: string, selector: string): Term {
  const match = /!=|==|=/.exec(term);
  if (match === null) {
    const message = `invalid selector: '${selector}'; can't understand '${term}'`;
    throw new SelectorSyntaxError(message);
  }
  const value = unescaped(term.slice(match.index + match[0].length));
  return { field: term.slice(0, match.index), value, equal: match[0] !== "!=" };
}

function textOf({ field, value, equal }: Term): string {
  return `${field}${equal ? "=" : "!="}${value.replace(/[\\,=]/g, "\\$&")}`;
}

function selectorOf(terms: readonly Term[]): Selector {
  const text = terms.map(textOf).join(",");
  return {
    isEmpty: terms.length === 0,
    attributes: [...new Set(terms.map(({ field }) => field))],
    matches: (fields) =>
      terms.every(({ field, value, equal }) => {
        const present = Object.hasOwn(fields, field) ? fields[field] : "";
        return (present === value) === equal;
      }),
    exactValue: (attribute) =>
      terms.find(({ field, equal }) => equal && field === attribute)?.value,
    toString: () => text,
  };
}

/** A selector of the objects with one value in one field. */
export function fieldEquals(field: string, value: string): Selector {
  return selectorOf([{ field, value, equal: true }]);
}

/**
 * Parses a field selector; "" selects everything. Whether a kind has the fields is checked by its
 * store. Throws SelectorSyntaxError with Kubernetes' text.
 */
export function parseFieldSelector(text: string): Selector {
  const terms = splitTerms(text)
    .filter((term) => term !== "")
    .sort()
    .map((term) => parseTerm(term, text))
    // A term without field and value selects everything.
    .filter(({ field, value }) => field !== "" || value !== "");
  return terms.length === 0 ? EVERYTHING : selectorOf(terms);
}
