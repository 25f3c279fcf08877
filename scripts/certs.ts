/**
 * Certificates for the local cluster, for tests and for operators: authorities in memory, and the
 * leaf certificates that they sign. ECDSA on P-256. The authorities' keys are never written, so no
 * certificate can be added to a directory later: new authorities replace all of it.
 *
 *     ca.pem        signs server.pem (shown to clients) and client.pem (good for clients only)
 *     peer-ca.pem   signs peer.pem and nothing else: members trust it between themselves, so no
 *                   client's certificate passes for a member's
 */
import type { webcrypto } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import { join } from "node:path";
// The library below looks for it when it loads.
import "reflect-metadata";
import * as x509 from "@peculiar/x509";

/** A certificate and its private key (PKCS #8), both PEM. */
export interface Certificate {
  readonly certPem: string;
  readonly keyPem: string;
}

/** What a leaf certificate says. */
export interface LeafOptions {
  readonly commonName: string;
  /** DNS names and IP addresses the holder answers at. Empty for a client that only calls. */
  readonly hosts: readonly string[];
  /**
   * For which use it is valid. A peer is both; so is etcd's server certificate, with which its own
   * gateway calls.
   */
  readonly usage: "server" | "client" | "both";
  /** Days from now until it expires. */
  readonly days?: number;
}

/** Names and addresses under which a member on this machine is reached. */
export const localHosts: readonly string[] = ["localhost", "127.0.0.1", "::1"];

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const validDays = 825;
const dayMs = 86_400_000;
/** Certificates start a little in the past, so that a clock that is slightly behind takes them. */
const startSlackMs = 3_600_000;

/**
 * A certificate authority: `caPem` is what the others trust, `issue` signs a new certificate with a
 * new key.
 */
export interface Authority {
  readonly caPem: string;
  issue(options: LeafOptions): Promise<Certificate>;
}

/** A new authority with a new key. */
export async function createAuthority(commonName: string): Promise<Authority> {
  const keys = await newKeys();
  const issuer = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [commonName] }],
    notBefore: new Date(Date.now() - startSlackMs),
    notAfter: new Date(Date.now() + validDays * dayMs),
    keys,
    signingAlgorithm: algorithm,
    serialNumber: newSerial(),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return {
    caPem: `${issuer.toString("pem")}\n`,
    issue: (options) => issueLeaf(issuer, keys.privateKey, options),
  };
}

async function issueLeaf(
  issuer: x509.X509Certificate,
  signingKey: CryptoKey,
  options: LeafOptions,
): Promise<Certificate> {
  const keys = await newKeys();
  const usages = {
    server: [x509.ExtendedKeyUsage.serverAuth],
    client: [x509.ExtendedKeyUsage.clientAuth],
  };
  const extensions: x509.Extension[] = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension(
      options.usage === "both" ? [...usages.server, ...usages.client] : usages[options.usage],
    ),
    await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
  ];
  if (options.hosts.length > 0) {
    const names = options.hosts.map(
      (host) => ({ type: isIP(host) === 0 ? "dns" : "ip", value: host }) as const,
    );
    extensions.push(new x509.SubjectAlternativeNameExtension(names));
  }
  const cert = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [options.commonName] }],
    issuer: issuer.subjectName,
    notBefore: new Date(Date.now() - startSlackMs),
    notAfter: new Date(Date.now() + (options.days ?? validDays) * dayMs),
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: algorithm,
    serialNumber: newSerial(),
    extensions,
  });
  const pkcs8 = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    certPem: `${cert.toString("pem")}\n`,
    keyPem: `${x509.PemConverter.encode(pkcs8, "PRIVATE KEY")}\n`,
  };
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return (await crypto.subtle.generateKey(algorithm, true, [
    "sign",
    "verify",
  ])) as webcrypto.CryptoKeyPair;
}

/** 16 random bytes as hex; the first bit clear, because a serial number is positive. */
function newSerial(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = (bytes[0] & 0x7f) | 0x40;
  return Buffer.from(bytes).toString("hex");
}

/** The certificate files of a directory, by absolute path. */
export interface CertificateFiles {
  readonly ca: string;
  readonly peerCa: string;
  readonly server: string;
  readonly serverKey: string;
  readonly peer: string;
  readonly peerKey: string;
  readonly client: string;
  readonly clientKey: string;
}

/** Where the files of `dir` are, present or not. */
export function certificateFiles(dir: string): CertificateFiles {
  return {
    ca: join(dir, "ca.pem"),
    peerCa: join(dir, "peer-ca.pem"),
    server: join(dir, "server.pem"),
    serverKey: join(dir, "server-key.pem"),
    peer: join(dir, "peer.pem"),
    peerKey: join(dir, "peer-key.pem"),
    client: join(dir, "client.pem"),
    clientKey: join(dir, "client-key.pem"),
  };
}

/** The names that the certificates of a directory are issued for. */
export interface LeafNames {
  /** Names and addresses of the server and peer certificates. */
  readonly hosts: readonly string[];
  /** The common name of the client certificate. */
  readonly client: string;
}

/**
 * The names that the certificates of `dir` are issued for now. Throws an Error with the path if one
 * cannot be read.
 */
export function leafNamesOf(dir: string): LeafNames {
  const files = certificateFiles(dir);
  const server = new x509.X509Certificate(readFileSync(files.server, "utf8"));
  const client = new x509.X509Certificate(readFileSync(files.client, "utf8"));
  const names = server.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? [];
  return {
    hosts: names.map((name) => name.value),
    client: client.subjectName.getField("CN")[0] ?? "client",
  };
}

/**
 * Makes two authorities and a server, a peer and a client certificate in `dir` (0700; keys 0600).
 */
export async function writeCertificates(
  dir: string,
  names: LeafNames = { hosts: localHosts, client: "client" },
): Promise<CertificateFiles> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  chmodSync(dir, 0o700);
  const files = certificateFiles(dir);
  // The names distinguish successive authorities.
  const series = newSerial().slice(-8);
  const authority = await createAuthority(`Quorate CA ${series}`);
  const peerAuthority = await createAuthority(`Quorate peer CA ${series}`);
  const server = await authority.issue({ commonName: "server", hosts: names.hosts, usage: "both" });
  const peer = await peerAuthority.issue({ commonName: "peer", hosts: names.hosts, usage: "both" });
  const client = await authority.issue({ commonName: names.client, hosts: [], usage: "client" });
  writePrivately(files.server, server.certPem, 0o644);
  writePrivately(files.serverKey, server.keyPem, 0o600);
  writePrivately(files.peer, peer.certPem, 0o644);
  writePrivately(files.peerKey, peer.keyPem, 0o600);
  writePrivately(files.client, client.certPem, 0o644);
  writePrivately(files.clientKey, client.keyPem, 0o600);
  writePrivately(files.peerCa, peerAuthority.caPem, 0o644);
  // Last: a directory without ca.pem is one whose making was cut short.
  writePrivately(files.ca, authority.caPem, 0o644);
  return files;
}

/**
 * Under another name first, so that a reader never sees half a file and a key is never readable by
 * others, not even briefly.
 */
export function writePrivately(path: string, text: string, mode: number): void {
  const draft = `${path}.new`;
  writeFileSync(draft, text, { mode });
  chmodSync(draft, mode);
  renameSync(draft, path);
}

/**
 * Why the certificates of `dir` cannot be used for another `minDays` days, or undefined if they
 * can.
 */
export function certificateTrouble(dir: string, minDays = 1): string | undefined {
  const files = certificateFiles(dir);
  for (const path of Object.values(files)) {
    if (!existsSync(path)) return `${path} is missing`;
    if (path.endsWith("-key.pem")) continue;
    let notAfter: Date;
    try {
      notAfter = new x509.X509Certificate(readFileSync(path, "utf8")).notAfter;
    } catch (error) {
      return `${path} is not a certificate: ${(error as Error).message}`;
    }
    if (notAfter.getTime() < Date.now() + minDays * dayMs)
      return `${path} expires at ${notAfter.toISOString()}`;
  }
  return undefined;
}
