/**
 * Form values of a request, as Go's http.Request.ParseForm reads them (net/http/request.go,
 * net/url/url.go): those of the body come before those of the query.
 *
 * Everything is latin1, one char a byte.
 */
import type { HttpHead } from "@quorate/host";
import { toLatin1 } from "@quorate/proto";

/** Values by name, in their order. */
export type Form = ReadonlyMap<string, readonly string[]>;

/** A form that is not well formed; `message` is Go's text. */
export class FormError extends Error {}

/** Fields that a form may have. v2 knows 15. */
export const MAX_FORM_FIELDS = 1000;

const FORM_TYPE = "application/x-www-form-urlencoded";
/** Requests whose body is read. */
const WITH_BODY: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/**
 * The form of a request.
 * @throws FormError for the first field that is not well formed, the body's before the query's
 */
export function parseForm({ method, query, headers }: HttpHead, body: Uint8Array): Form {
  const values = new Map<string, string[]>();
  let problem: string | undefined;
  const [type] = (headers.get("content-type") ?? "").split(";", 1);
  const isForm = WITH_BODY.has(method) && type.trim().toLowerCase() === FORM_TYPE;
  for (const text of isForm ? [toLatin1(body), query] : [query]) {
    const bad = parseInto(values, text);
    problem ??= bad;
  }
  if (problem !== undefined) throw new FormError(problem);
  return values;
}

/** Returns the first problem of the text. */
function parseInto(values: Map<string, string[]>, text: string): string | undefined {
  let problem: string | undefined;
  const fields = text.split("&", MAX_FORM_FIELDS + 1);
  if (fields.length > MAX_FORM_FIELDS) return `more than ${MAX_FORM_FIELDS} fields`;
  for (const field of fields) {
    if (field.includes(";")) {
      problem ??= "invalid semicolon separator in query";
      continue;
    }
    if (field === "") continue;
    const equals = field.indexOf("=");
    try {
      const name = decodeEscapes(equals < 0 ? field : field.slice(0, equals), true);
      const value = equals < 0 ? "" : decodeEscapes(field.slice(equals + 1), true);
      const list = values.get(name);
      if (list === undefined) values.set(name, [value]);
      else list.push(value);
    } catch (error) {
      problem ??= (error as Error).message;
    }
  }
  return problem;
}

const ESCAPES = /%(?:[0-9a-fA-F]{2})?/g;

/**
 * Decodes percent escapes, and a plus as a space in a query.
 * @throws FormError with Go's text (url.EscapeError)
 */
export function decodeEscapes(text: string, isQuery: boolean): string {
  const plain = isQuery && text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!plain.includes("%")) return plain;
  return plain.replace(ESCAPES, (sequence, at: number) => {
    if (sequence.length === 3) return String.fromCharCode(Number.parseInt(sequence.slice(1), 16));
    throw new FormError(`invalid URL sequence ${goQuoted(plain.slice(at, at + 3))}`);
  });
}

/** %q of a short text. */
function goQuoted(text: string): string {
  return JSON.stringify(text);
}

/** The first value of a name; "" where there is none. */
export function firstValue(form: Form, name: string): string {
  return form.get(name)?.[0] ?? "";
}
