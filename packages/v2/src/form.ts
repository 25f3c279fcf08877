/**
 * Form values of a request, as Go's http.Request.ParseForm reads them (net/http/request.go,
 * net/url/url.go): those of the body come before those of the query.
 *
 * Everything is latin1, one char a byte.
 */
import type { HttpHead } from "@quorate/host";
import { CodedError, quoteText, toLatin1 } from "@quorate/proto";

/** Values by name, in their order. */
export type Form = ReadonlyMap<string, readonly string[]>;

/** A form that is not well formed; `message` is Go's text. */
export class FormError extends CodedError<"InvalidForm"> {
  constructor(message: string) {
    super("FormError", "InvalidForm", message);
  }
}

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
  const [type = ""] = (headers.get("content-type") ?? "").split(";", 1);
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

const PERCENT = 0x25;
const PLUS = 0x2b;
const SPACE = 0x20;

/**
 * Decodes percent escapes, and a plus as a space in a query.
 * @throws FormError with Go's text (url.EscapeError)
 */
export function decodeEscapes(text: string, isQuery: boolean): string {
  if (!text.includes("%")) return isQuery ? text.replaceAll("+", " ") : text;
  const bytes = new Uint8Array(text.length);
  let size = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text.charCodeAt(at);
    if (byte === PERCENT) {
      const high = hexDigit(text.charCodeAt(at + 1));
      const low = hexDigit(text.charCodeAt(at + 2));
      if (high < 0 || low < 0)
        throw new FormError(`invalid URL escape ${quoteText(text.slice(at, at + 3))}`);
      bytes[size++] = (high << 4) | low;
      at += 2;
    } else bytes[size++] = byte === PLUS && isQuery ? SPACE : byte;
  }
  return toLatin1(bytes, 0, size);
}

/** The value of a hexadecimal digit; less than 0 for any other char, and none. */
function hexDigit(char: number): number {
  if (char >= 0x30 && char <= 0x39) return char - 0x30;
  const letter = char | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** The first value of a name; "" where there is none. */
export function firstValue(form: Form, name: string): string {
  return form.get(name)?.[0] ?? "";
}
