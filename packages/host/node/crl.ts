/**
 * Reads certificate revocation lists (RFC 5280 section 5), without checking their signatures, as
 * etcd does.
 */
import { derElementAt } from "../src/der.ts";
import { pemBlocks } from "../src/pem.ts";
import type { Pauses } from "../src/turns.ts";

/** A serial number in upper-case hexadecimal without leading zeros. */
export function plainSerial(hex: string): string {
  return hex.toUpperCase().replace(/^0+(.)/, "$1");
}

/** What a revocation list says. */
export interface Revocations {
  /** Serial numbers, as `plainSerial` writes them. */
  readonly serials: ReadonlySet<string>;
  /** nextUpdate in milliseconds since 1970; of several lists the earliest, undefined without. */
  readonly nextUpdateMs: number | undefined;
}

/** Entries of a step; some three microseconds each. */
const ENTRIES_PER_STEP = 50;

/**
 * Reads certificate revocation lists: one in DER, or any number in PEM, one per CA of a bundle. The
 * signature is not checked, as in etcd. Rejects if a list is malformed.
 */
export async function readRevocations(list: Uint8Array, pauses: Pauses): Promise<Revocations> {
  const serials = new Set<string>();
  const times: number[] = [];
  let items = 0;
  for (const der of dersOf(list)) {
    if (++items % ENTRIES_PER_STEP === 0) await pauses.next();
    const parts = partsOf(der);
    times.push(...nextUpdateMs(parts));
    const entries = parts
      .slice(parts[0]?.tag === INTEGER ? 4 : 3)
      .find((part) => part.tag === SEQUENCE);
    if (entries === undefined) continue;
    for (let at = 0; at < entries.content.length; ) {
      if (++items % ENTRIES_PER_STEP === 0) await pauses.next();
      const entry = derItem(entries.content, at);
      serials.add(plainSerial(derContent(entry.content, 0, INTEGER).toString("hex")));
      at = entry.end;
    }
  }
  return { serials, nextUpdateMs: times.length === 0 ? undefined : Math.min(...times) };
}

function nextUpdateMs(parts: readonly DerItem[]): readonly number[] {
  // The times are thisUpdate and the optional nextUpdate.
  const [, next] = parts.filter(({ tag }) => tag === UTC_TIME || tag === GENERALIZED_TIME);
  if (next === undefined) return [];
  const text = next.content.toString("latin1");
  // RFC 5280 section 4.1.2.5: two digits of a year below 50 are of this century.
  const century = next.tag === GENERALIZED_TIME ? "" : Number(text.slice(0, 2)) < 50 ? "20" : "19";
  const digits = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(century + text);
  if (digits === null) throw new Error("not a certificate revocation list");
  const [, year, month, day, hour, minute, second] = digits.map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  return [Date.UTC(year, month - 1, day, hour, minute, second)];
}

/** The lists of a file in DER. Throws for a file that ends within one. */
function dersOf(list: Uint8Array): readonly Buffer[] {
  const text = Buffer.from(list).toString("latin1");
  const pems = pemBlocks(text, "X509 CRL");
  if (pems.length !== text.split("-----BEGIN X509 CRL-----").length - 1)
    throw new Error("it contains a truncated certificate revocation list");
  return pems.length > 0 ? pems.map((pem) => Buffer.from(pem.body, "base64")) : [Buffer.from(list)];
}

/**
 * The parts of tbsCertList (RFC 5280):
 *
 *     CertificateList { tbsCertList { version OPTIONAL, algorithm, issuer, thisUpdate,
 *       nextUpdate OPTIONAL, SEQUENCE OF entry OPTIONAL, extensions OPTIONAL }, ... }
 */
function partsOf(der: Buffer): DerItem[] {
  const list = derContent(derContent(der, 0, SEQUENCE), 0, SEQUENCE);
  const parts: DerItem[] = [];
  for (let at = 0; at < list.length; ) {
    if (parts.length === MAX_PARTS) throw new Error("not a certificate revocation list");
    const part = derItem(list, at);
    parts.push(part);
    at = part.end;
  }
  return parts;
}

/** Of tbsCertList. */
const MAX_PARTS = 7;
const SEQUENCE = 0x30;
const INTEGER = 0x02;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;

interface DerItem {
  readonly tag: number;
  readonly content: Buffer;
  readonly end: number;
}

function derItem(bytes: Buffer, at: number): DerItem {
  const element = derElementAt(bytes, at);
  if (element === undefined) throw new Error("not a certificate revocation list");
  const { tag, start, end } = element;
  return { tag, content: bytes.subarray(start, end), end };
}

function derContent(bytes: Buffer, at: number, tag: number): Buffer {
  const item = derItem(bytes, at);
  if (item.tag !== tag) throw new Error("not a certificate revocation list");
  return item.content;
}
