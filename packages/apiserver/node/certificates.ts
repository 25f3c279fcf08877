/**
 * The certificates that an API server makes for itself where none are given, as embedded control
 * planes do:
 *
 *     DIR/ca.{crt,key}            the authority, for servers and clients
 *     DIR/apiserver.{crt,key}     shown to clients
 *     DIR/admin.{crt,key}         of a client in the group system:masters
 *     DIR/service-account.key     signs the tokens of service accounts
 *
 * Made at the first start and kept. A server certificate whose names do not cover the addresses of
 * this start, or that ends soon, is made again from the same authority.
 */
import {
  createPrivateKey,
  generateKeyPairSync,
  KeyObject,
  type webcrypto,
  X509Certificate,
} from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import { CodedError } from "@quorate/proto";

const DAY_MS = 24 * 3_600_000;
const CA_VALID_MS = 10 * 365 * DAY_MS;
const VALID_MS = 365 * DAY_MS;
/** A certificate that ends sooner is made again. */
const RENEW_BEFORE_MS = 30 * DAY_MS;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/** A certificate and its key, as PEM. */
export interface Pair {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface OwnCertificates {
  readonly ca: Pair;
  readonly server: Pair;
  readonly admin: Pair;
  /** PKCS 8, EC P-256. */
  readonly serviceAccountKeyPem: string;
}

interface Subject {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly hosts: readonly string[];
  readonly usage: "server" | "client";
}

/**
 * Reads the certificates of `dir`, and makes those that are missing. Rejects with Node's errors,
 * which name the path, and with OwnCertificateError for a file that cannot be used.
 * @param hosts names and addresses that clients use
 */
export async function ownCertificates(
  dir: string,
  hosts: readonly string[],
  nowMs: number,
): Promise<OwnCertificates> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const ca = read(dir, "ca") ?? keep(dir, "ca", await makeAuthority(nowMs));
  const issued = async (name: string, subject: Subject): Promise<Pair> => {
    const present = read(dir, name);
    if (present !== undefined && isUsable(present, ca, subject.hosts, nowMs)) return present;
    return keep(dir, name, await issue(ca, subject, nowMs));
  };
  const server = await issued("apiserver", {
    ...{ commonName: "kube-apiserver", organizations: [], hosts, usage: "server" },
  });
  const admin = await issued("admin", {
    ...{ commonName: "kubernetes-admin", organizations: ["system:masters"] },
    ...{ hosts: [], usage: "client" },
  });
  return { ca, server, admin, serviceAccountKeyPem: serviceAccountKey(dir) };
}

/** A new certificate of a client, which the server knows as this user in these groups. */
export function clientCertificate(
  ca: Pair,
  user: string,
  groups: readonly string[],
  nowMs: number,
): Promise<Pair> {
  const subject = { commonName: user, organizations: groups, hosts: [], usage: "client" } as const;
  return issue(ca, subject, nowMs);
}

function serviceAccountKey(dir: string): string {
  const path = join(dir, "service-account.key");
  if (existsSync(path)) return checked(path, (pem) => createPrivateKey(pem));
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const text = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  write(path, text, 0o600);
  return text;
}

/** A file of the directory that cannot be used. */
export class OwnCertificateError extends CodedError<"Damaged"> {
  constructor(path: string, problem: string) {
    super(
      "OwnCertificateError",
      "Damaged",
      `${path}: ${problem}. Restore the file from a backup; or move the directory of ${path} away: ` +
        "the next start makes a new authority and new keys, and clients need the new kubeconfig",
    );
  }
}

function read(dir: string, name: string): Pair | undefined {
  const [cert, key] = [join(dir, `${name}.crt`), join(dir, `${name}.key`)];
  const missing = [cert, key].filter((path) => !existsSync(path));
  // A new authority in place of half of one would lock all clients out without a word.
  if (name === "ca" && missing.length === 1)
    throw new OwnCertificateError(missing[0], "the file is missing, and its other half is there");
  if (missing.length > 0) return undefined;
  return {
    certPem: checked(cert, (pem) => new X509Certificate(pem)),
    keyPem: checked(key, (pem) => createPrivateKey(pem)),
  };
}

/** The text of a file that `parse` accepts. */
function checked(path: string, parse: (pem: string) => unknown): string {
  const pem = readFileSync(path, "utf8");
  try {
    parse(pem);
  } catch (error) {
    throw new OwnCertificateError(path, `not usable: ${(error as Error).message}`);
  }
  return pem;
}

function keep(dir: string, name: string, pair: Pair): Pair {
  write(join(dir, `${name}.key`), pair.keyPem, 0o600);
  write(join(dir, `${name}.crt`), pair.certPem, 0o644);
  return pair;
}

/** Under another name first, so that no half of a file is ever read. */
function write(path: string, text: string, mode: number): void {
  const draft = `${path}.new`;
  writeFileSync(draft, text, { mode });
  chmodSync(draft, mode);
  renameSync(draft, path);
}

function isUsable(pair: Pair, ca: Pair, hosts: readonly string[], nowMs: number): boolean {
  const certificate = new X509Certificate(pair.certPem);
  const authority = new X509Certificate(ca.certPem);
  if (certificate.validToDate.getTime() < nowMs + RENEW_BEFORE_MS) return false;
  if (!certificate.verify(authority.publicKey)) return false;
  return hosts.every((host) =>
    isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host),
  );
}

/** The X.509 library takes as long to load as the rest of a start, so only this loads it. */
async function library() {
  await import("reflect-metadata");
  return import("@peculiar/x509");
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
  return keys as webcrypto.CryptoKeyPair;
}

async function makeAuthority(nowMs: number): Promise<Pair> {
  const x509 = await library();
  const keys = await newKeys();
  const { keyCertSign, digitalSignature, cRLSign } = x509.KeyUsageFlags;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: ["kubernetes"] }],
    notBefore: new Date(nowMs - DAY_MS),
    notAfter: new Date(nowMs + CA_VALID_MS),
    keys,
    signingAlgorithm: ALGORITHM,
    serialNumber: newSerial(),
    extensions: [
      new x509.KeyUsagesExtension(keyCertSign | digitalSignature | cRLSign, true),
      new x509.BasicConstraintsExtension(true, undefined, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certPem: `${certificate.toString("pem")}\n`, keyPem: privatePem(keys) };
}

async function issue(ca: Pair, subject: Subject, nowMs: number): Promise<Pair> {
  const x509 = await library();
  const keys = await newKeys();
  const { ExtendedKeyUsage, KeyUsageFlags } = x509;
  const issuer = new x509.X509Certificate(ca.certPem);
  const signingKey = await crypto.subtle.importKey("pkcs8", derOf(ca.keyPem), ALGORITHM, false, [
    "sign",
  ]);
  const { commonName, organizations, hosts, usage } = subject;
  const names = hosts.map(
    (host) => ({ type: isIP(host) === 0 ? "dns" : "ip", value: host }) as const,
  );
  const purpose = usage === "server" ? ExtendedKeyUsage.serverAuth : ExtendedKeyUsage.clientAuth;
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [...organizations.map((name) => ({ O: [name] })), { CN: [commonName] }],
    issuer: issuer.subjectName,
    notBefore: new Date(nowMs - DAY_MS),
    notAfter: new Date(nowMs + VALID_MS),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: ALGORITHM,
    serialNumber: newSerial(),
    extensions: [
      new x509.KeyUsagesExtension(
        KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment,
        true,
      ),
      new x509.ExtendedKeyUsageExtension([purpose]),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
      ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
    ],
  });
  return { certPem: `${certificate.toString("pem")}\n`, keyPem: privatePem(keys) };
}

function privatePem({ privateKey }: webcrypto.CryptoKeyPair): string {
  return KeyObject.from(privateKey).export({ type: "pkcs8", format: "pem" }).toString();
}

function derOf(pem: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ""), "base64"));
}

/** 16 random bytes as hex; the first bit clear, because a serial number is positive. */
function newSerial(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = (bytes[0] & 0x7f) | 0x40;
  return Buffer.from(bytes).toString("hex");
}
