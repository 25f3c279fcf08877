/**
 * Makes X.509 certificates (RFC 5280) of an authority, a server and clients, with EC P-256 keys.
 * Only what those need: @peculiar/x509 makes any certificate, and takes a third of the server's
 * first start.
 *
 *     Certificate { tbs { version, serial, algorithm, issuer, validity, subject, key,
 *                         [3] extensions }, algorithm, signature }
 */

import {
  createHash,
  createPrivateKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";
import { isIPv4, isIPv6 } from "node:net";
import { promisify } from "node:util";
import { defined } from "@quorate/proto";
import { bitString, contextTag, element, elementsOf, objectId, Tag, time } from "./der.ts";

/** A certificate and its key, as PEM. */
export interface Pair {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface CertificateSubject {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** DNS names and IP addresses. */
  readonly hosts: readonly string[];
  readonly usage: "server" | "client";
}

export interface Validity {
  readonly fromMs: number;
  readonly untilMs: number;
}

const COMMON_NAME = "2.5.4.3";
const ORGANIZATION = "2.5.4.10";
const SUBJECT_KEY_ID = "2.5.29.14";
const KEY_USAGE = "2.5.29.15";
const ALTERNATIVE_NAMES = "2.5.29.17";
const BASIC_CONSTRAINTS = "2.5.29.19";
const AUTHORITY_KEY_ID = "2.5.29.35";
const EXTENDED_KEY_USAGE = "2.5.29.37";
const USAGES = { server: "1.3.6.1.5.5.7.3.1", client: "1.3.6.1.5.5.7.3.2" } as const;
const EC_SHA256 = "1.2.840.10045.4.3.2";
const RSA_SHA256 = "1.2.840.113549.1.1.11";

/** digitalSignature, keyCertSign and cRLSign; digitalSignature and keyEncipherment. */
const AUTHORITY_USE = bitString(Buffer.from([0x86]), 1);
const LEAF_USE = bitString(Buffer.from([0xa0]), 5);
const KEY_ID_BYTES = 20;

const generateKeys = promisify(generateKeyPair);

interface Keys {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

/** New keys; generated outside of the event loop. */
function newKeys(): Promise<Keys> {
  return generateKeys("ec", { namedCurve: "P-256" });
}

/** A new authority, signed by itself. */
export async function makeAuthority(commonName: string, validity: Validity): Promise<Pair> {
  const keys = await newKeys();
  const name = nameOf([], commonName);
  const spki = spkiOf(keys.publicKey);
  const extensions = [
    extension(KEY_USAGE, AUTHORITY_USE, true),
    extension(BASIC_CONSTRAINTS, element(Tag.Sequence, TRUE), true),
    extension(SUBJECT_KEY_ID, element(Tag.OctetString, keyIdOf(spki))),
  ];
  const parts = { issuer: name, subject: name, validity, spki, extensions };
  return pairOf(parts, keys.privateKey, keys.privateKey);
}

/** A certificate of `authority`. Throws Node's errors for an authority that cannot be read. */
export async function issueCertificate(
  authority: Pair,
  subject: CertificateSubject,
  validity: Validity,
): Promise<Pair> {
  const keys = await newKeys();
  const { name: issuer, keyId } = issuerOf(new X509Certificate(authority.certPem).raw);
  const extensions = [
    extension(KEY_USAGE, LEAF_USE, true),
    extension(EXTENDED_KEY_USAGE, element(Tag.Sequence, objectId(USAGES[subject.usage]))),
  ];
  if (keyId !== undefined) {
    const id = element(contextTag(0, false), keyId);
    extensions.push(extension(AUTHORITY_KEY_ID, element(Tag.Sequence, id)));
  }
  if (subject.hosts.length > 0) {
    const names = subject.hosts.map(alternativeName);
    extensions.push(extension(ALTERNATIVE_NAMES, element(Tag.Sequence, ...names)));
  }
  const name = nameOf(subject.organizations, subject.commonName);
  const spki = spkiOf(keys.publicKey);
  const parts = { issuer, subject: name, validity, spki, extensions };
  return pairOf(parts, createPrivateKey(authority.keyPem), keys.privateKey);
}

interface Parts {
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  readonly validity: Validity;
  readonly spki: Uint8Array;
  readonly extensions: readonly Uint8Array[];
}

function pairOf(parts: Parts, signer: KeyObject, own: KeyObject): Pair {
  const { issuer, subject, validity, spki, extensions } = parts;
  const isRsa = signer.asymmetricKeyType === "rsa";
  const algorithm = isRsa
    ? element(Tag.Sequence, objectId(RSA_SHA256), element(0x05))
    : element(Tag.Sequence, objectId(EC_SHA256));
  const tbs = element(
    Tag.Sequence,
    element(contextTag(0, true), element(Tag.Integer, Buffer.from([2]))),
    element(Tag.Integer, newSerial()),
    algorithm,
    issuer,
    element(Tag.Sequence, time(validity.fromMs), time(validity.untilMs)),
    subject,
    spki,
    element(contextTag(3, true), element(Tag.Sequence, ...extensions)),
  );
  const signature = bitString(sign("sha256", tbs, signer));
  const der = element(Tag.Sequence, tbs, algorithm, signature);
  return {
    certPem: pem("CERTIFICATE", der),
    keyPem: own.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** The subject of a certificate as it stands there, and its subjectKeyIdentifier. */
function issuerOf(der: Uint8Array): { name: Uint8Array; keyId: Uint8Array | undefined } {
  const [tbs] = elementsOf(elementsOf(der)[0].content);
  const fields = elementsOf(tbs.content);
  // Certificates of version 1 have no [0] with the version.
  const subjectAt = fields[0].tag === contextTag(0, true) ? 5 : 4;
  const last = defined(fields.at(-1), "the last field");
  const list =
    last.tag === contextTag(3, true) ? elementsOf(elementsOf(last.content)[0].content) : [];
  const wanted = Buffer.from(objectId(SUBJECT_KEY_ID));
  for (const { content } of list) {
    const [id, ...rest] = elementsOf(content);
    if (!wanted.equals(id.whole)) continue;
    return {
      name: fields[subjectAt].whole,
      keyId: elementsOf(defined(rest.at(-1), "an element of rest").content)[0].content,
    };
  }
  return { name: fields[subjectAt].whole, keyId: undefined };
}

const TRUE = element(Tag.Boolean, Buffer.from([0xff]));

function extension(id: string, value: Uint8Array, isCritical = false): Uint8Array {
  const critical = isCritical ? [TRUE] : [];
  return element(Tag.Sequence, objectId(id), ...critical, element(Tag.OctetString, value));
}

function nameOf(organizations: readonly string[], commonName: string): Uint8Array {
  const part = (id: string, value: string) => {
    const pair = [objectId(id), element(Tag.Utf8String, Buffer.from(value))];
    return element(Tag.Set, element(Tag.Sequence, ...pair));
  };
  const all = organizations.map((name) => part(ORGANIZATION, name));
  return element(Tag.Sequence, ...all, part(COMMON_NAME, commonName));
}

function alternativeName(host: string): Uint8Array {
  if (isIPv4(host)) return element(contextTag(7, false), Buffer.from(host.split(".").map(Number)));
  if (isIPv6(host)) return element(contextTag(7, false), ipv6Bytes(host));
  return element(contextTag(2, false), Buffer.from(host, "latin1"));
}

/** @param address a valid one, perhaps with a zone or an IPv4 address at its end */
function ipv6Bytes(address: string): Uint8Array {
  const [plain] = address.split("%");
  const tail = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(plain);
  const hex = (high: string, low: string) => (Number(high) * 256 + Number(low)).toString(16);
  const text =
    tail === null ? plain : `${tail[1]}${hex(tail[2], tail[3])}:${hex(tail[4], tail[5])}`;
  const [left, right] = text.split("::").map((half) => half.split(":").filter((it) => it !== ""));
  const zeros = right === undefined ? 0 : 8 - left.length - right.length;
  const groups = [...left, ...Array<string>(zeros).fill("0"), ...(right ?? [])];
  return Buffer.from(groups.map((group) => group.padStart(4, "0")).join(""), "hex");
}

function spkiOf(key: KeyObject): Uint8Array {
  return key.export({ type: "spki", format: "der" });
}

/** Twenty bytes of a hash of the key (RFC 7093 section 2). */
function keyIdOf(spki: Uint8Array): Uint8Array {
  return createHash("sha256").update(spki).digest().subarray(0, KEY_ID_BYTES);
}

/** 16 random bytes; the first bit is clear, because a serial number is positive. */
function newSerial(): Uint8Array {
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0] & 0x7f) | 0x40;
  return bytes;
}

function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
