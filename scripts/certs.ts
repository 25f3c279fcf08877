/**
 * Certificates for the local cluster, for tests and for operators: authorities in memory, and the
 * leaf certificates that they sign. ECDSA on P-256.
 *
 *     ca.pem        signs server.pem (shown to clients) and client.pem (good for clients only)
 *     peer-ca.pem   signs peer.pem and nothing else: members trust it between themselves, so no
 *                   client's certificate passes for a member's
 *     clients/      NAME.pem and NAME-key.pem of each client that was added
 *
 * The authorities' keys are never written: whoever reads the directory can use its certificates,
 * but make none under another name. A client that is added later therefore has an authority of its
 * own, which signs its one certificate and is appended to ca.pem. Members read that file again, so
 * none restarts.
 */

import type { webcrypto } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { isIP } from "node:net";
import { dirname, join } from "node:path";
import { writeWholeFile } from "@quorate/host/node";
// The library below looks for it when it loads.
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { pemBlocks } from "@quorate/host";

/** A certificate and its private key (PKCS #8), both PEM. */
export interface Certificate {
  readonly certPem: string;
  readonly keyPem: string;
}

/** What a leaf certificate says. */
export interface LeafOptions {
  /** Empty: the certificate has no subject, and is no user's. */
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
    subject: options.commonName === "" ? [] : [{ CN: [options.commonName] }],
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

/** Mutual TLS of a member for clients and peers, in etcd's flags. */
export function tlsFlags(certs: Omit<CertificateFiles, "client" | "clientKey">): string[] {
  return [
    `--cert-file=${certs.server}`,
    `--key-file=${certs.serverKey}`,
    `--trusted-ca-file=${certs.ca}`,
    "--client-cert-auth",
    `--peer-cert-file=${certs.peer}`,
    `--peer-key-file=${certs.peerKey}`,
    `--peer-trusted-ca-file=${certs.peerCa}`,
    "--peer-client-cert-auth",
  ];
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

/** A client certificate beside the first, and its key. */
export interface AddedClientFiles {
  readonly name: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Each added client's authority is named in every handshake that asks for a certificate: some
 * 50 bytes each.
 */
export const maxAddedClients = 64;

const KEY_SUFFIX = "-key";

/** The longest common name that a certificate may have: ub-common-name of RFC 5280. */
export const maxCommonNameChars = 64;

/**
 * Why `name` cannot be the name of an added client, or undefined if it can: it names its files.
 */
export function clientNameTrouble(name: string): string | undefined {
  const isFileName =
    name.length <= maxCommonNameChars && /^[A-Za-z0-9_][A-Za-z0-9_.@-]*$/.test(name);
  if (isFileName && !name.endsWith(KEY_SUFFIX)) return undefined;
  return (
    `the client's name is ${JSON.stringify(name)}; it should have up to ${maxCommonNameChars} letters, ` +
    `digits and _ . @ -, begin with none of . @ -, and not end with ${KEY_SUFFIX}`
  );
}

/** Where the files of the added client `name` of `dir` are, present or not. */
export function addedClientFiles(dir: string, name: string): AddedClientFiles {
  const base = join(dir, "clients", name);
  return { name, cert: `${base}.pem`, key: `${base}${KEY_SUFFIX}.pem` };
}

/** The clients that were added to `dir`, by name. */
export function addedClients(dir: string): AddedClientFiles[] {
  const folder = join(dir, "clients");
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => file.endsWith(".pem") && !file.endsWith(`${KEY_SUFFIX}.pem`))
    .sort()
    .map((file) => addedClientFiles(dir, file.slice(0, -".pem".length)));
}

/** An added client: the name of its files, and the common name of its certificate. */
export interface AddedClient {
  readonly name: string;
  readonly commonName: string;
}

/** The names that the certificates of a directory are issued for. */
export interface LeafNames {
  /** Names and addresses of the server and peer certificates. */
  readonly hosts: readonly string[];
  /** The common name of the client certificate. */
  readonly client: string;
  /** The clients that were added later. */
  readonly added?: readonly AddedClient[];
}

/**
 * The names that the certificates of `dir` are issued for now. Throws an Error with the path if one
 * cannot be read.
 */
export function leafNamesOf(dir: string): LeafNames {
  const files = certificateFiles(dir);
  const server = new x509.X509Certificate(readFileSync(files.server, "utf8"));
  const commonName = (path: string): string | undefined =>
    new x509.X509Certificate(readFileSync(path, "utf8")).subjectName.getField("CN")[0];
  const names = server.getExtension(x509.SubjectAlternativeNameExtension)?.names.items ?? [];
  return {
    hosts: names.map((name) => name.value),
    client: commonName(files.client) ?? "client",
    added: addedClients(dir).map(({ name, cert }) => ({
      name,
      commonName: commonName(cert) ?? "",
    })),
  };
}

/**
 * Makes two authorities and a server, a peer and a client certificate in `dir` (0700; keys 0600),
 * and for each added client an authority and a certificate.
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
  writeWholeFile(files.server, server.certPem, 0o644);
  writeWholeFile(files.serverKey, server.keyPem, 0o600);
  writeWholeFile(files.peer, peer.certPem, 0o644);
  writeWholeFile(files.peerKey, peer.keyPem, 0o600);
  writeWholeFile(files.client, client.certPem, 0o644);
  writeWholeFile(files.clientKey, client.keyPem, 0o600);
  writeWholeFile(files.peerCa, peerAuthority.caPem, 0o644);
  const authorities = [authority.caPem];
  for (const one of names.added ?? []) authorities.push(await writeAddedClient(dir, one));
  // Last: a directory without ca.pem is one whose making was cut short.
  writeWholeFile(files.ca, authorities.join(""), 0o644);
  return files;
}

/** Makes an authority and its one certificate. Returns the authority's, PEM. */
async function writeAddedClient(dir: string, { name, commonName }: AddedClient): Promise<string> {
  const files = addedClientFiles(dir, name);
  mkdirSync(dirname(files.cert), { recursive: true, mode: 0o700 });
  const authority = await createAuthority(`Quorate CA of client ${newSerial().slice(-8)}`);
  const client = await authority.issue({ commonName, hosts: [], usage: "client" });
  writeWholeFile(files.key, client.keyPem, 0o600);
  writeWholeFile(files.cert, client.certPem, 0o644);
  return authority.caPem;
}

/**
 * Adds a client to the certificates of `dir`: it has an authority of its own, which ca.pem holds
 * from now on. Throws an Error if there is one of its name, or a rotation under way, whose last
 * step would drop the new authority.
 */
export async function addClient(dir: string, client: AddedClient): Promise<AddedClientFiles> {
  const files = addedClientFiles(dir, client.name);
  for (const path of [files.cert, files.key])
    if (existsSync(path)) throw new Error(`${path} is there already; choose another name`);
  if (existsSync(join(dir, "next")))
    throw new Error(`a rotation of ${dir} is under way; finish it first (rotate)`);
  if (addedClients(dir).length >= maxAddedClients)
    throw new Error(
      `${dir} has ${maxAddedClients} added clients, which is the most; use a CA of your own`,
    );
  const { ca } = certificateFiles(dir);
  const authority = await writeAddedClient(dir, client);
  writeWholeFile(ca, certificatesOf(ca).concat(authority.trim(), "").join("\n"), 0o644);
  return files;
}

/** Each certificate of a file of several, PEM. */
export function certificatesOf(path: string): string[] {
  return pemBlocks(readFileSync(path, "utf8"), "CERTIFICATE").map(({ text }) => text);
}

/**
 * Why the certificates of `dir` cannot be used for another `minDays` days, or undefined if they
 * can.
 */
export function certificateTrouble(dir: string, minDays = 1): string | undefined {
  const added = addedClients(dir).flatMap(({ cert, key }) => [cert, key]);
  const latest = Date.now() + minDays * dayMs;
  for (const path of [...Object.values(certificateFiles(dir)), ...added]) {
    if (!existsSync(path)) return `${path} is missing`;
    if (path.endsWith(`${KEY_SUFFIX}.pem`)) continue;
    try {
      const found = certificatesOf(path);
      if (found.length === 0) return `${path} is not a certificate: it has none in PEM`;
      for (const pem of found) {
        const { notAfter } = new x509.X509Certificate(pem);
        if (notAfter.getTime() < latest) return `${path} expires at ${notAfter.toISOString()}`;
      }
    } catch (error) {
      return `${path} is not a certificate: ${(error as Error).message}`;
    }
  }
  return undefined;
}
