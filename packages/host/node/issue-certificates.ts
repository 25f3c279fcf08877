/**
 * Makes X.509 certificates (RFC 5280) of an authority, a server and clients, with EC P-256 keys.
 * The library is loaded with the first certificate: a start that has them all does without.
 */

import { createHash, createPrivateKey, KeyObject, type webcrypto } from "node:crypto";
import { isIPv4, isIPv6 } from "node:net";
import type * as x509 from "@peculiar/x509";
import { newSerial } from "./self-cert.ts";

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
  /** "both": a member, which calls other members with what it shows to them. */
  readonly usage: "server" | "client" | "both";
}

export interface Validity {
  readonly fromMs: number;
  readonly untilMs: number;
}

type Library = typeof x509;

const EC = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const RSA = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" } as const;
const KEY_ID_BYTES = 20;

/** A new authority, signed by itself. */
export async function makeAuthority(commonName: string, validity: Validity): Promise<Pair> {
  const { library, keys } = await prepared();
  const { digitalSignature, keyCertSign, cRLSign } = library.KeyUsageFlags;
  const certificate = await library.X509CertificateGenerator.createSelfSigned({
    ...common(validity),
    name: [{ CN: [commonName] }],
    keys,
    signingAlgorithm: EC,
    extensions: [
      new library.KeyUsagesExtension(digitalSignature | keyCertSign | cRLSign, true),
      new library.BasicConstraintsExtension(true, undefined, true),
      new library.SubjectKeyIdentifierExtension(keyIdOf(keys.publicKey)),
    ],
  });
  return pairOf(certificate, keys);
}

/** A certificate of `authority`. Throws Node's errors for an authority that cannot be read. */
export async function issueCertificate(
  authority: Pair,
  { commonName, organizations, hosts, usage }: CertificateSubject,
  validity: Validity,
): Promise<Pair> {
  const { library, keys } = await prepared();
  const { ExtendedKeyUsage } = library;
  const { digitalSignature, keyEncipherment } = library.KeyUsageFlags;
  const issuer = new library.X509Certificate(authority.certPem);
  const keyId = issuer.getExtension(library.SubjectKeyIdentifierExtension)?.keyId;
  const signer = createPrivateKey(authority.keyPem);
  const { crv = "" } = signer.export({ format: "jwk" });
  const signingAlgorithm = signer.asymmetricKeyType === "rsa" ? RSA : { ...EC, namedCurve: crv };
  const certificate = await library.X509CertificateGenerator.create({
    ...common(validity),
    // As it stands in the authority's certificate: Go compares the bytes of names.
    issuer: issuer.subjectName,
    subject: [...organizations.map((name) => ({ O: [name] })), { CN: [commonName] }],
    publicKey: keys.publicKey,
    signingKey: signer.toCryptoKey(signingAlgorithm, false, ["sign"]),
    signingAlgorithm,
    extensions: [
      new library.KeyUsagesExtension(digitalSignature | keyEncipherment, true),
      new library.ExtendedKeyUsageExtension([
        ...(usage === "client" ? [] : [ExtendedKeyUsage.serverAuth]),
        ...(usage === "server" ? [] : [ExtendedKeyUsage.clientAuth]),
      ]),
      ...(keyId === undefined ? [] : [new library.AuthorityKeyIdentifierExtension(keyId)]),
      ...(hosts.length === 0
        ? []
        : [new library.SubjectAlternativeNameExtension(hosts.map(alternativeName))]),
    ],
  });
  return pairOf(certificate, keys);
}

/** The library, and new keys, which are generated outside of the event loop. */
async function prepared(): Promise<{ library: Library; keys: webcrypto.CryptoKeyPair }> {
  // The library needs it when it loads.
  await import("reflect-metadata");
  const library = await import("@peculiar/x509");
  const keys = await crypto.subtle.generateKey(EC, true, ["sign", "verify"]);
  return { library, keys: keys as webcrypto.CryptoKeyPair };
}

function common({ fromMs, untilMs }: Validity) {
  const serialNumber = newSerial();
  return { serialNumber, notBefore: new Date(fromMs), notAfter: new Date(untilMs) };
}

function alternativeName(host: string): { readonly type: "dns" | "ip"; readonly value: string } {
  if (!isIPv6(host)) return { type: isIPv4(host) ? "ip" : "dns", value: host };
  // Without a zone, which certificates have not, and with groups only, which the library reads.
  const [address] = host.split("%");
  return { type: "ip", value: new URL(`http://[${address}]`).hostname.slice(1, -1) };
}

/** Twenty bytes of a hash of the key (RFC 7093 section 2), as hex. */
function keyIdOf(key: webcrypto.CryptoKey): string {
  const spki = KeyObject.from(key).export({ type: "spki", format: "der" });
  return createHash("sha256").update(spki).digest().subarray(0, KEY_ID_BYTES).toString("hex");
}

function pairOf(certificate: x509.X509Certificate, keys: webcrypto.CryptoKeyPair): Pair {
  const keyPem = KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" });
  return { certPem: `${certificate.toString("pem")}\n`, keyPem: keyPem.toString() };
}
