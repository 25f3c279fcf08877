/**
 * The certificates that an API server makes for itself where none are given, as embedded control
 * planes do:
 *
 *     DIR/ca.{crt,key}            the authority, for servers and clients
 *     DIR/apiserver.{crt,key}     shown to clients
 *     DIR/admin.{crt,key}         of a client in the group system:masters
 *     DIR/front-proxy-ca.{crt,key}, front-proxy-client.{crt,key}
 *                                 shown to other API servers, which then believe who asks
 *     DIR/service-account.key     signs the tokens of service accounts
 *
 * Made at the first start and kept. A server certificate whose names do not cover the addresses of
 * this start, or that ends soon, is made again from the same authority.
 */
import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
import {
  type CertificateSubject,
  issueCertificate,
  makeAuthority,
  type Pair,
  writeWholeFile,
} from "@quorate/host/node";
import { CodedError } from "@quorate/proto";

export type { Pair } from "@quorate/host/node";

const DAY_MS = 24 * 3_600_000;
const CA_VALID_MS = 10 * 365 * DAY_MS;
const VALID_MS = 365 * DAY_MS;
/** A certificate that ends sooner is made again. */
const RENEW_BEFORE_MS = 30 * DAY_MS;

/** In the certificate that other API servers are shown. */
export const FRONT_PROXY_NAME = "front-proxy-client";

export interface OwnCertificates {
  readonly ca: Pair;
  readonly server: Pair;
  readonly admin: Pair;
  /** Of requests that go on to other servers, and its own authority. */
  readonly frontProxy: Pair;
  readonly frontProxyCa: Pair;
  /** PKCS 8, EC P-256. */
  readonly serviceAccountKeyPem: string;
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
  const authority = async (name: string, subject: string): Promise<Pair> =>
    read(dir, name) ?? keep(dir, name, await newAuthority(subject, nowMs));
  const [ca, frontProxyCa] = await Promise.all([
    authority("ca", "kubernetes"),
    authority("front-proxy-ca", "front-proxy-ca"),
  ]);
  const issued = async (name: string, subject: CertificateSubject, by = ca): Promise<Pair> => {
    const present = read(dir, name);
    if (present !== undefined && isUsable(present, by, subject.hosts, nowMs)) return present;
    return keep(dir, name, await issue(by, subject, nowMs));
  };
  const [server, admin, frontProxy] = await Promise.all([
    issued("apiserver", {
      commonName: "kube-apiserver",
      organizations: [],
      hosts,
      usage: "server",
    }),
    issued("admin", {
      commonName: "kubernetes-admin",
      organizations: ["system:masters"],
      hosts: [],
      usage: "client",
    }),
    issued(
      "front-proxy-client",
      { commonName: FRONT_PROXY_NAME, organizations: [], hosts: [], usage: "client" },
      frontProxyCa,
    ),
  ]);
  const serviceAccountKeyPem = serviceAccountKey(dir);
  return { ca, server, admin, frontProxy, frontProxyCa, serviceAccountKeyPem };
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

function newAuthority(name: string, nowMs: number): Promise<Pair> {
  return makeAuthority(name, { fromMs: nowMs - DAY_MS, untilMs: nowMs + CA_VALID_MS });
}

function issue(ca: Pair, subject: CertificateSubject, nowMs: number): Promise<Pair> {
  const validity = { fromMs: nowMs - DAY_MS, untilMs: nowMs + VALID_MS };
  return issueCertificate(ca, subject, validity);
}

function serviceAccountKey(dir: string): string {
  const path = join(dir, "service-account.key");
  if (existsSync(path)) return checked(path, (pem) => createPrivateKey(pem));
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const text = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  writeWholeFile(path, text, 0o600);
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
  const [missing, other] = [cert, key].filter((path) => !existsSync(path));
  // A new authority in place of half of one would lock all clients out without a word.
  if (/(?:^|-)ca$/.test(name) && missing !== undefined && other === undefined)
    throw new OwnCertificateError(missing, "the file is missing, and its other half is there");
  if (missing !== undefined) return undefined;
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
  writeWholeFile(join(dir, `${name}.key`), pair.keyPem, 0o600);
  writeWholeFile(join(dir, `${name}.crt`), pair.certPem, 0o644);
  return pair;
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
