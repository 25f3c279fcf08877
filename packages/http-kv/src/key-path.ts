/**
 * Keys and parameters in URLs.
 *
 *     /kv/a%2Fb/c?prefix&limit=10&after=a%2Fb%2Fc%00
 *         -------                                       key: the bytes "a/b/c"
 *                 --------------------------------      parameters, each once
 */
import { fromLatin1, fromUtf8 } from "@quorate/proto";
import { Problem } from "./problems.ts";

const MAX_SHOWN_CHARS = 100;

/** A text of the client as it is repeated to it: cut, without control characters. */
export function shown(text: string): string {
  return JSON.stringify(
    text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}...` : text,
  );
}

/**
 * The bytes of percent-encoded text (RFC 3986 section 2.1). A "+" is a plus. Undefined for a "%"
 * without two hexadecimal digits.
 */
export function percentDecoded(text: string): Uint8Array | undefined {
  if (!text.includes("%")) return bytesOf(text);
  let isBad = false;
  const decoded = text.replace(/%([0-9a-fA-F]{2})?/g, (_all, hex: string | undefined) => {
    if (hex === undefined) isBad = true;
    return String.fromCharCode(Number.parseInt(hex ?? "0", 16));
  });
  return isBad ? undefined : bytesOf(decoded);
}

const BEYOND_LATIN1 = /[\u0100-\uffff]/;

/** An engine passes bytes beyond ASCII as latin1; other characters can only be meant as UTF-8. */
function bytesOf(text: string): Uint8Array {
  return BEYOND_LATIN1.test(text) ? fromUtf8(text) : fromLatin1(text);
}

/**
 * The key behind a prefix of the path.
 * @throws Problem bad-key
 */
export function keyOfPath(path: string, prefix: string): Uint8Array {
  const key = percentDecoded(path.slice(prefix.length));
  if (key !== undefined) return key;
  throw new Problem(
    "bad-key",
    `the path ${shown(path)} has a "%" that two hexadecimal digits do not follow`,
    'write "%" itself as %25',
  );
}

/** The parameters of a query, each of which may be given once. */
export class Query {
  readonly #values = new Map<string, string>();

  /**
   * @param known the names that this path and method have
   * @throws Problem bad-parameter for another name, or one that is given twice
   */
  constructor(query: string, known: readonly string[]) {
    if (query === "") return;
    for (const part of query.split("&")) {
      if (part === "") continue;
      const equals = part.indexOf("=");
      const name = equals < 0 ? part : part.slice(0, equals);
      if (!known.includes(name)) {
        const names = known.length === 0 ? "there are none here" : `there are: ${known.join(", ")}`;
        throw new Problem("bad-parameter", `the parameter ${shown(name)} is not known`, names);
      }
      if (this.#values.has(name))
        throw new Problem(
          "bad-parameter",
          `the parameter "${name}" is given twice`,
          "give it once",
        );
      this.#values.set(name, equals < 0 ? "" : part.slice(equals + 1));
    }
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** A parameter that is on or off: ?name, ?name=true, ?name=false. */
  flag(name: string): boolean {
    const value = this.#values.get(name);
    if (value === undefined || value === "false") return false;
    if (value === "" || value === "true") return true;
    throw new Problem(
      "bad-parameter",
      `?${name}=${cut(value)} is neither on nor off`,
      `write ?${name} or ?${name}=false`,
    );
  }

  /** A whole number from `least` to `most`; undefined where it is not given. */
  integer(name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
    if (Number.isSafeInteger(number) && number >= least && number <= most) return number;
    throw new Problem(
      "bad-parameter",
      `?${name}=${cut(value)} is not a number that can be used`,
      `write a whole number from ${least} to ${most}`,
    );
  }

  /** Percent-encoded bytes, in which "+" is a space, as forms and URLSearchParams write it. */
  bytes(name: string): Uint8Array | undefined {
    const value = this.#values.get(name);
    return value === undefined ? undefined : this.#decoded(name, value.replaceAll("+", " "));
  }

  /** Percent-encoded ASCII, in which "+" is a plus. */
  text(name: string): string | undefined {
    const value = this.#values.get(name);
    if (value === undefined) return undefined;
    return String.fromCharCode(...this.#decoded(name, value).subarray(0, MAX_TEXT_BYTES));
  }

  #decoded(name: string, value: string): Uint8Array {
    const bytes = percentDecoded(value);
    if (bytes !== undefined) return bytes;
    throw new Problem(
      "bad-parameter",
      `?${name}=${cut(value)} has a "%" that two hexadecimal digits do not follow`,
      'write "%" itself as %25',
    );
  }
}

/** Texts beyond it are cut; they are longer than any that is right. */
const MAX_TEXT_BYTES = 256;

function cut(text: string): string {
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}...` : text;
}

/** First key of the range of keys that begin with `key`: the empty key stands for the least one. */
export function prefixStart(key: Uint8Array): Uint8Array {
  return key.length === 0 ? new Uint8Array(1) : key;
}
