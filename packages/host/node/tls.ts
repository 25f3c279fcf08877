/**
 * TLS for the client and peer ports: converts etcd's options to Node's, and makes the checks after
 * the handshake. TLS itself refuses certificates whose chain does not verify. Allowed names,
 * revoked serial numbers and the address of a peer are checked here, before any byte reaches a
 * protocol.
 */

import { X509Certificate } from "node:crypto";
import { lookup, lookupService, reverse } from "node:dns/promises";
import { isIP } from "node:net";
import {
  type CommonConnectionOptions,
  type ConnectionOptions,
  checkServerIdentity,
  type TlsOptions as NodeTlsOptions,
  type SecureContextOptions,
  type TLSSocket,
} from "node:tls";
import { pemBlocks } from "../src/pem.ts";
import { tlsContext } from "../src/tls-context.ts";
import type { Pauses } from "../src/turns.ts";
import { plainSerial, type Revocations, readRevocations } from "./crl.ts";
import type { FileContents } from "./file-source.ts";

/** TLS versions by Node's names. */
export type TlsVersion = "TLSv1.2" | "TLSv1.3";

/** The TLS options of a port. PEM texts may contain chains. */
export interface TlsOptions {
  readonly certPem: string;
  readonly keyPem: string;
  /** Client certificate for outgoing connections; default `certPem` and `keyPem`. */
  readonly clientCertPem?: string | undefined;
  readonly clientKeyPem?: string | undefined;
  /** CAs that verify the other side; default the system's. */
  readonly trustedCaPem?: string | undefined;
  /**
   * CAs of proxies in front of this server. A client's certificate of theirs proves no user, but
   * that what it says of users is true (HttpRequest.peerProxyName).
   */
  readonly proxyCaPem?: string | undefined;
  /** Requires client certificates. As in etcd, a trusted CA requires them too. */
  readonly clientCertAuth?: boolean | undefined;
  /**
   * With a trusted CA: clients may come without a certificate, or with one that does not verify.
   * Handlers see which (HttpRequest.peerCertificateError).
   */
  readonly clientCertOptional?: boolean | undefined;
  /** When not empty, the other side's certificate must have one of these common names. */
  readonly allowedCommonNames?: readonly string[] | undefined;
  /**
   * When not empty, the other side's certificate must be valid for one of these hosts or addresses.
   */
  readonly allowedHostnames?: readonly string[] | undefined;
  /**
   * Revoked serial numbers, upper-case hexadecimal without leading zeros (see
   * `readRevocations`).
   */
  readonly revokedSerials?: ReadonlySet<string> | undefined;
  /**
   * nextUpdate of the revocation list, in milliseconds since 1970; undefined without a list or
   * nextUpdate.
   */
  readonly crlNextUpdateMs?: number | undefined;
  /** Cipher suites by OpenSSL's names, joined by colons; default the platform's. */
  readonly ciphers?: string | undefined;
  readonly minVersion?: TlsVersion | undefined;
  readonly maxVersion?: TlsVersion | undefined;
  /**
   * The name that a server's certificate must contain, instead of the dialled host.
   */
  readonly serverName?: string | undefined;
  /** Accepts any server certificate. For self-signed clusters only. */
  readonly insecureSkipVerify?: boolean | undefined;
}

/** The TLS options of a side that only dials, and may have no certificate. */
export interface ClientTls extends Omit<TlsOptions, "certPem" | "keyPem"> {
  readonly certPem: string | undefined;
  readonly keyPem: string | undefined;
}

/** TlsOptions with paths instead of texts. */
export interface TlsFiles
  extends Omit<
    TlsOptions,
    | "certPem"
    | "keyPem"
    | "clientCertPem"
    | "clientKeyPem"
    | "trustedCaPem"
    | "revokedSerials"
    | "crlNextUpdateMs"
  > {
  readonly certFile: string;
  readonly keyFile: string;
  readonly clientCertFile?: string | undefined;
  readonly clientKeyFile?: string | undefined;
  readonly trustedCaFile?: string | undefined;
  readonly crlFile?: string | undefined;
}

/** The options in the files. Rejects for a revocation list that is none. */
export async function parseTlsFiles(
  files: TlsFiles,
  contents: FileContents,
  pauses: Pauses,
): Promise<TlsOptions> {
  const { certFile, keyFile, clientCertFile, clientKeyFile, trustedCaFile, crlFile, ...rest } =
    files;
  const bytes = (path: string): Uint8Array => contents.get(path)!;
  const text = (path: string): string => Buffer.from(bytes(path)).toString("utf8");
  const revocations = crlFile ? await revocationsOf(crlFile, bytes(crlFile), pauses) : undefined;
  return {
    ...rest,
    certPem: text(certFile),
    keyPem: text(keyFile),
    clientCertPem: clientCertFile ? text(clientCertFile) : undefined,
    clientKeyPem: clientKeyFile ? text(clientKeyFile) : undefined,
    trustedCaPem: trustedCaFile ? text(trustedCaFile) : undefined,
    revokedSerials: revocations?.serials,
    crlNextUpdateMs: revocations?.nextUpdateMs,
  };
}

async function revocationsOf(
  crlFile: string,
  list: Uint8Array,
  pauses: Pauses,
): Promise<Revocations> {
  try {
    return await readRevocations(list, pauses);
  } catch (error) {
    throw new Error(`${crlFile}: ${(error as Error).message}`);
  }
}

function contextOptions(
  options: ClientTls,
  certPem: string | undefined,
  keyPem: string | undefined,
): SecureContextOptions {
  const { trustedCaPem, proxyCaPem, minVersion, maxVersion, ciphers } = options;
  const trusted = proxyCaPem === undefined ? trustedCaPem : `${trustedCaPem ?? ""}\n${proxyCaPem}`;
  return tlsContext({ trusted, cert: certPem, key: keyPem, minVersion, maxVersion, ciphers });
}

/** Whether clients must present a certificate. */
export function demandsClientCertificate(options: TlsOptions): boolean {
  if (options.clientCertOptional === true) return false;
  return options.clientCertAuth === true || options.trustedCaPem !== undefined;
}

/** Options for tls.createServer. ALPN offers the protocols in this order. */
export function serverTlsOptions(
  options: TlsOptions,
  alpnProtocols: string[],
): NodeTlsOptions & CommonConnectionOptions {
  const demand = demandsClientCertificate(options);
  return {
    ...contextOptions(options, options.certPem, options.keyPem),
    ALPNProtocols: alpnProtocols,
    requestCert: demand || options.clientCertOptional === true,
    rejectUnauthorized: demand,
  };
}

/**
 * Options for tls.connect to `host`. The server's certificate must be valid for `serverName`, or
 * else `host`.
 */
export function clientTlsOptions(
  options: ClientTls,
  host: string,
  alpnProtocols: string[],
): ConnectionOptions {
  const name = options.serverName || host;
  return {
    ...contextOptions(
      options,
      options.clientCertPem ?? options.certPem,
      options.clientKeyPem ?? options.keyPem,
    ),
    ALPNProtocols: alpnProtocols,
    // TLS allows no address as server name, but the certificate is still checked against it.
    servername: isIP(name) === 0 ? name : "",
    checkServerIdentity: (_dialled, certificate) => checkServerIdentity(name, certificate),
    rejectUnauthorized: options.insecureSkipVerify !== true,
  };
}

/** The common name of a certificate's subject, or "". */
export function commonName(certificate: X509Certificate): string {
  // The legacy form has no escapes. Of several names the last counts, as in Go.
  const names: string | string[] | undefined = certificate.toLegacyObject().subject?.CN;
  return (Array.isArray(names) ? names.at(-1) : names) ?? "";
}

/** A certificate's whole subject on one line, such as "O=shop,CN=ann". */
function subjectOf(certificate: X509Certificate): string {
  return (certificate.subject ?? "").split("\n").join(",");
}

/** The organizations of a certificate's subject, in its order. */
export function organizations(certificate: X509Certificate): readonly string[] {
  const names: string | string[] | undefined = certificate.toLegacyObject().subject?.O;
  return names === undefined ? [] : Array.isArray(names) ? names : [names];
}

/**
 * The identity that a connection's certificate proves. Where certificates are optional, one that
 * does not verify proves nothing, and its error is passed on.
 */
export function certifiedPeer(
  socket: TLSSocket,
  certificate: X509Certificate | undefined,
  { trustedCaPem, proxyCaPem }: Pick<TlsOptions, "trustedCaPem" | "proxyCaPem"> = {},
): {
  readonly peerCommonName: string | undefined;
  readonly peerSubject?: string;
  readonly peerOrganizations?: readonly string[];
  readonly peerCertificateSha256?: string;
  readonly peerCertificateError?: string;
  readonly peerProxyName?: string;
} {
  if (certificate === undefined) return { peerCommonName: undefined };
  if (!socket.authorized) {
    const why = socket.authorizationError as Error | string | undefined;
    const text = typeof why === "string" ? why : (why?.message ?? "certificate not verified");
    return { peerCommonName: undefined, peerCertificateError: text };
  }
  const isProxy = proxyCaPem !== undefined && isSignedBy(certificate, proxyCaPem);
  const proxy = isProxy ? { peerProxyName: commonName(certificate) } : {};
  // TLS has verified that one of all authorities has signed it, but not which.
  if (proxyCaPem !== undefined && !isSignedBy(certificate, trustedCaPem ?? ""))
    return { peerCommonName: undefined, peerCertificateError: UNKNOWN_AUTHORITY, ...proxy };
  return {
    ...proxy,
    peerCommonName: commonName(certificate),
    peerSubject: subjectOf(certificate),
    peerOrganizations: organizations(certificate),
    peerCertificateSha256: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
  };
}

/** The DNS names and addresses in a certificate. */
export function alternativeNames(certificate: X509Certificate): {
  dnsNames: string[];
  ipAddresses: string[];
} {
  const dnsNames: string[] = [];
  const ipAddresses: string[] = [];
  for (const part of (certificate.subjectAltName ?? "").split(", ")) {
    if (part.startsWith("DNS:")) dnsNames.push(part.slice(4));
    else if (part.startsWith("IP Address:")) ipAddresses.push(part.slice(11));
  }
  return { dnsNames, ipAddresses };
}

function isValidFor(certificate: X509Certificate, host: string): boolean {
  return (
    (isIP(host) === 0
      ? certificate.checkHost(host, { subject: "never" })
      : certificate.checkIP(host)) !== undefined
  );
}

/**
 * Why the other side's certificate is refused although its chain verifies; undefined if it is
 * accepted. Checks allowed names, revoked serials, and that a required certificate is present. Both
 * sides of a connection call it, as in etcd.
 */
export function refuseCertificate(
  options: TlsOptions,
  certificate: X509Certificate | undefined,
  demanded: boolean,
): string | undefined {
  if (certificate === undefined)
    return demanded ? "tls: client didn't provide a certificate" : undefined;
  const names = options.allowedCommonNames ?? [];
  if (names.length > 0 && !names.includes(commonName(certificate)))
    return "client certificate authentication failed";
  const hosts = options.allowedHostnames ?? [];
  if (hosts.length > 0 && !hosts.some((host) => isValidFor(certificate, host)))
    return "client certificate authentication failed";
  const { revokedSerials } = options;
  if (revokedSerials === undefined) return undefined;
  const serial = linksOf(certificate)
    .map((link) => plainSerial(link.serialNumber))
    .find((one) => revokedSerials.has(one));
  return serial === undefined
    ? undefined
    : `transport: certificate serial ${serial.toLowerCase()} revoked`;
}

/**
 * Why a connection that resumes a TLS session is refused; undefined if it is not. OpenSSL checks
 * the times of a certificate in the handshake that began the session, and not again: without this,
 * a client stays for as long as sessions live after its certificate has ended. Go makes such a
 * client shake hands anew.
 */
export function refuseResumed(
  socket: TLSSocket,
  certificate: X509Certificate | undefined,
): string | undefined {
  if (certificate === undefined || !socket.isSessionReused()) return undefined;
  const now = new Date();
  const isOver = linksOf(certificate).some(({ validToDate }) => validToDate < now);
  return isOver ? REASONS["CERT_HAS_EXPIRED"] : undefined;
}

/** Certificates between a client's and an authority. */
const MAX_LINKS = 10;

/** Whether one of the authorities has signed a certificate, or one above it. */
function isSignedBy(certificate: X509Certificate, authorities: string): boolean {
  const anchors = pemBlocks(authorities, "CERTIFICATE").map(
    ({ text }) => new X509Certificate(text),
  );
  let link = certificate;
  for (let i = 0; i < MAX_LINKS; i++) {
    if (anchors.some((one) => one.raw.equals(link.raw) || isIssuedBy(link, one))) return true;
    const above = link.issuerCertificate;
    if (above === undefined || !above.ca || !isIssuedBy(link, above)) return false;
    link = above;
  }
  return false;
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** A certificate and those that the other side has sent above it. */
function linksOf(certificate: X509Certificate): X509Certificate[] {
  const links = [certificate];
  for (let above = certificate.issuerCertificate; above !== undefined; ) {
    if (links.includes(above)) break;
    links.push(above);
    above = above.issuerCertificate;
  }
  return links;
}

/**
 * The names of an address: from DNS, and from the system's resolver, which reads /etc/hosts;
 * `reverse` does not.
 */
async function namesOf(address: string): Promise<string[]> {
  const [all, { hostname }] = await Promise.all([
    reverse(address).catch(() => []),
    lookupService(address, 0).catch(() => ({ hostname: address })),
  ]);
  return [...all, hostname].map((name) => name.replace(/\.$/, ""));
}

/**
 * Why a peer's certificate does not match the peer's address, or undefined: an address in it, or a
 * DNS name that resolves to it, must match. A certificate with neither is accepted. Resolves names,
 * so it may take as long as the resolver.
 */
export async function refuseClientAddress(
  certificate: X509Certificate,
  remoteAddress: string,
): Promise<string | undefined> {
  const { dnsNames, ipAddresses } = alternativeNames(certificate);
  if (dnsNames.length === 0 && ipAddresses.length === 0) return undefined;
  if (ipAddresses.length > 0) {
    if (certificate.checkIP(remoteAddress) !== undefined) return undefined;
    if (dnsNames.length === 0)
      return `x509: certificate is valid for ${ipAddresses.join(", ")}, not ${remoteAddress}`;
  }
  const names = await namesOf(remoteAddress);
  const plain = dnsNames.filter((name) => !name.startsWith("*."));
  const suffixes = dnsNames.filter((name) => name.startsWith("*.")).map((name) => name.slice(1));
  if (
    names.some((name) => plain.includes(name) || suffixes.some((suffix) => name.endsWith(suffix)))
  )
    return undefined;
  for (const name of plain) {
    const addresses = await lookup(name, { all: true }).catch(() => []);
    if (addresses.some(({ address }) => address === remoteAddress)) return undefined;
  }
  return `tls: ${JSON.stringify(remoteAddress)} does not match any of DNSNames [${dnsNames.map((name) => JSON.stringify(name)).join(" ")}]`;
}

const UNKNOWN_AUTHORITY =
  "tls: failed to verify certificate: x509: certificate signed by unknown authority";

/** Go's texts, which etcd's users search their logs for, by Node's error code. */
const REASONS: Readonly<Record<string, string>> = {
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED:
    "tls: failed to verify certificate: x509: certificate has expired or is not yet valid",
  CERT_NOT_YET_VALID:
    "tls: failed to verify certificate: x509: certificate has expired or is not yet valid",
  INVALID_PURPOSE:
    "tls: failed to verify certificate: x509: certificate specifies an incompatible key usage",
  ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE: "tls: client didn't provide a certificate",
  ERR_SSL_HTTP_REQUEST: "tls: first record does not look like a TLS handshake",
  ERR_SSL_WRONG_VERSION_NUMBER: "tls: first record does not look like a TLS handshake",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "tls: first record does not look like a TLS handshake",
  ERR_SSL_NO_APPLICATION_PROTOCOL: "tls: client requested unsupported application protocols",
  ERR_SSL_UNSUPPORTED_PROTOCOL: "tls: client offered only unsupported versions",
  ERR_SSL_NO_SHARED_CIPHER: "tls: no cipher suite supported by both client and server",
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: "remote error: tls: unknown certificate authority",
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: "remote error: tls: bad certificate",
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: "remote error: tls: certificate required",
  ERR_TLS_HANDSHAKE_TIMEOUT: "tls: handshake timed out",
  ECONNRESET: "EOF",
};

/**
 * The reason of a failed handshake, with Go's text where there is one. The socket knows why a
 * certificate was refused; the error often does not.
 */
export function handshakeFailure(error: Error & { code?: string }, socket?: TLSSocket): string {
  // Typed as Error, it is a code.
  const refusal = socket?.authorizationError as unknown;
  const refused = typeof refusal === "string" && refusal !== "";
  const code = refused ? refusal : (error.code ?? "");
  // On the side that refuses, the error may be just the end of the connection.
  return REASONS[code] ?? (refused && error.code !== refusal ? refusal : firstLine(error.message));
}

function firstLine(text: string): string {
  const end = text.indexOf("\n");
  return end === -1 ? text : text.slice(0, end);
}
