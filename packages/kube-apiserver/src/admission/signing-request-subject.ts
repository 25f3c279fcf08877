/**
 * Reads who a request for a certificate is for (PKCS #10, RFC 2986), from its PEM:
 *
 *     SEQUENCE             the request
 *       SEQUENCE           what is asked for
 *         INTEGER          version
 *         SEQUENCE         subject
 *           SET
 *             SEQUENCE     OBJECT IDENTIFIER, text
 *         ...
 *       ...
 *
 * It reads as much as that, in one pass, and refuses what two readers could understand in two ways.
 */
import { pemBlocks } from "@quorate/host";
import { fromBase64, toUtf8 } from "@quorate/proto";

const INTEGER = 0x02;
const OBJECT_IDENTIFIER = 0x06;
const BMP_STRING = 0x1e;
const SEQUENCE = 0x30;
const SET = 0x31;
/** 2.5.4.10, encoded. */
const ORGANIZATION = "\x55\x04\x0a";
const LABEL = "CERTIFICATE REQUEST";
const LONG_LENGTH = 0x80;
const LONGEST_LENGTH_BYTES = 4;

interface Element {
  readonly tag: number;
  /** Of what it holds. */
  readonly start: number;
  readonly end: number;
}

/**
 * The organizations of the subject, which are the groups of a client.
 *
 * @param pem one block, of a request
 * @returns undefined for anything else
 */
export function requestedOrganizations(pem: string): readonly string[] | undefined {
  const [block] = pemBlocks(pem);
  // A block that one reader passes over would hide the next one from another reader.
  if (block?.label !== LABEL || pem.split("-----BEGIN").length !== 2) return undefined;
  const der = fromBase64(block.body.replaceAll("\r", "").replaceAll("\n", ""));
  return der && organizationsOf(der);
}

function organizationsOf(der: Uint8Array): readonly string[] | undefined {
  const inside = (element: Element | undefined, tag: number): readonly Element[] | undefined =>
    element?.tag === tag ? elementsOf(der, element.start, element.end) : undefined;
  const whole = elementsOf(der, 0, der.length);
  const [info] = inside(whole?.length === 1 ? whole[0] : undefined, SEQUENCE) ?? [];
  const [version, subject] = inside(info, SEQUENCE) ?? [];
  const sets = inside(subject, SEQUENCE);
  if (version?.tag !== INTEGER || sets === undefined) return undefined;
  const found: string[] = [];
  for (const set of sets) {
    const pairs = inside(set, SET);
    if (pairs === undefined) return undefined;
    for (const pair of pairs) {
      const [type, text, ...more] = inside(pair, SEQUENCE) ?? [];
      if (type?.tag !== OBJECT_IDENTIFIER || text === undefined || more.length > 0)
        return undefined;
      if (textOf(der, type) === ORGANIZATION) found.push(textOf(der, text));
    }
  }
  return found;
}

/** All elements that stand one after the other; undefined where they do not end at the end. */
function elementsOf(der: Uint8Array, start: number, end: number): Element[] | undefined {
  const found: Element[] = [];
  for (let at = start; at < end; ) {
    const element = elementAt(der, at, end);
    if (element === undefined) return undefined;
    found.push(element);
    at = element.end;
  }
  return found;
}

function elementAt(der: Uint8Array, at: number, limit: number): Element | undefined {
  const [tag = 0, first = 0] = der.subarray(at, limit);
  let start = at + 2;
  let length = first;
  if (first >= LONG_LENGTH) {
    const count = first - LONG_LENGTH;
    // 0 is a length that is not said, which DER has not.
    if (count === 0 || count > LONGEST_LENGTH_BYTES) return undefined;
    length = der.subarray(start, start + count).reduce((sum, byte) => sum * 256 + byte, 0);
    start += count;
  }
  const end = start + length;
  return end <= limit ? { tag, start, end } : undefined;
}

/** Of the encodings only the one with two bytes a character differs for ASCII. */
function textOf(der: Uint8Array, { tag, start, end }: Element): string {
  const text = toUtf8(der.subarray(start, end));
  return tag === BMP_STRING ? text.replaceAll("\0", "") : text;
}
