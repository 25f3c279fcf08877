/**
 * Reads certificate revocation lists (RFC 5280 section 5), without checking their signatures, as
 * etcd does.
 */
import { pemBlocks } from "../src/pem.ts";

/** A serial number in upper-case hexadecimal without leading zeros. */
export function plainSerial(hex: string): string {
  return hex.toUpperCase().replace(/^0+(.)/, "$1");
}

/**
 * Serial numbers in a certificate revocation list (RFC 5280 section 5), DER or PEM. The signature
 * is not checked, as in etcd. Throws if it is malformed.
 */
export function revokedSerials(list: Uint8Array): ReadonlySet<string> {
  const revoked = crlsOf(list).flatMap((parts) => {
    const entries = parts
      .slice(parts[0]?.tag === INTEGER ? 4 : 3)
      .find((part) => part.tag === SEQUENCE);
    return entries === undefined ? [] : derItems(entries.content);
  });
  return new Set(
    revoked.map((entry) => plainSerial(derContent(entry.content, 0, INTEGER).toString("hex"))),
  );
}

/**
 * nextUpdate of a certificate revocation list, in milliseconds since 1970; undefined if absent.
 */
export function crlNextUpdateMs(list: Uint8Array): number | undefined {
  const times = crlsOf(list).flatMap((parts) => nextUpdateMs(parts) ?? []);
  return times.length === 0 ? undefined : Math.min(...times);
}

function nextUpdateMs(parts: readonly DerItem[]): number | undefined {
  // The times are thisUpdate and the optional nextUpdate.
  const [, next] = parts.filter(({ tag }) => tag === UTC_TIME || tag === GENERALIZED_TIME);
  if (next === undefined) return undefined;
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
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/**
 * CertificateList { tbsCertList { version OPTIONAL, algorithm, issuer, thisUpdate, nextUpdate
 * OPTIONAL, SEQUENCE OF entry }, ... }
 *
 * One list in DER, or any number in PEM: one per CA of a bundle.
 */
function crlsOf(list: Uint8Array): DerItem[][] {
  const text = Buffer.from(list).toString("latin1");
  const pems = pemBlocks(text, "X509 CRL");
  if (pems.length !== text.split("-----BEGIN X509 CRL-----").length - 1)
    throw new Error("it contains a truncated certificate revocation list");
  const ders =
    pems.length > 0 ? pems.map((pem) => Buffer.from(pem.body, "base64")) : [Buffer.from(list)];
  return ders.map((der) => derItems(derContent(derContent(der, 0, SEQUENCE), 0, SEQUENCE)));
}

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
  const form = bytes[at + 1] ?? 0;
  const lengthBytes = form < 0x80 ? 0 : form & 0x7f;
  const start = at + 2 + lengthBytes;
  if (start > bytes.length || lengthBytes > 4) throw new Error("not a certificate revocation list");
  const length = lengthBytes === 0 ? form : bytes.readUIntBE(at + 2, lengthBytes);
  if (start + length > bytes.length) throw new Error("not a certificate revocation list");
  return { tag: bytes[at], content: bytes.subarray(start, start + length), end: start + length };
}

function derContent(bytes: Buffer, at: number, tag: number): Buffer {
  const item = derItem(bytes, at);
  if (item.tag !== tag) throw new Error("not a certificate revocation list");
  return item.content;
}

function derItems(bytes: Buffer): DerItem[] {
  const items: DerItem[] = [];
  for (let at = 0; at < bytes.length; at = items[items.length - 1].end)
    items.push(derItem(bytes, at));
  return items;
}
