/**
 * TLS for both ports of a member, client and peer: etcd's options in, Node's out, and the checks
 * that come after the handshake.
 *
 * Who presents a certificate that its chain does not carry is refused by TLS itself; what TLS does
 * not know of (allowed names, revoked serial numbers, the address a peer comes from) is checked
 * here, before any byte reaches a protocol.
 */
import type { X509Certificate } from "node:crypto";
import { lookup, lookupService, reverse } from "node:dns/promises";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import {
  type CommonConnectionOptions,
  type ConnectionOptions,
  checkServerIdentity,
  type TlsOptions as NodeTlsOptions,
  type SecureContextOptions,
  type TLSSocket,
} from "node:tls";

/** Versions as Node names them. */
export type TlsVersion = "TLSv1.2" | "TLSv1.3";

/** What one port knows of TLS. PEM texts may hold chains. */
export interface TlsOptions {
  readonly certPem: string;
  readonly keyPem: string;
  /** Shown when this side dials; `certPem` and `keyPem` where they are absent. */
  readonly clientCertPem?: string | undefined;
  readonly clientKeyPem?: string | undefined;
  /** Who signs the other side's certificates; the system's authorities where it is absent. */
  readonly trustedCaPem?: string | undefined;
  /** Demands a certificate of those who dial in. As in etcd, a trusted CA demands one too. */
  readonly clientCertAuth?: boolean | undefined;
  /** When not empty, the other side's certificate must have one of these common names. */
  readonly allowedCommonNames?: readonly string[] | undefined;
  /**
   * When not empty, the other side's certificate must be made out for one of these hosts or
   * addresses.
   */
  readonly allowedHostnames?: readonly string[] | undefined;
  /**
   * Serial numbers that are revoked, upper-case hexadecimal without leading zeros (see
   * `revokedSerials`).
   */
  readonly revokedSerials?: ReadonlySet<string> | undefined;
  /**
   * When the revocation list's next edition is due, in milliseconds since 1970; undefined without a
   * list or where it does not say.
   */
  readonly crlNextUpdateMs?: number | undefined;
  /** OpenSSL's list of cipher suites, joined by colons; the platform's choice where absent. */
  readonly ciphers?: string | undefined;
  readonly minVersion?: TlsVersion | undefined;
  readonly maxVersion?: TlsVersion | undefined;
  /**
   * The name that a dialled server's certificate must carry, instead of the host that was dialled.
   */
  readonly serverName?: string | undefined;
  /** Takes any server certificate when dialling. For self-signed clusters only. */
  readonly insecureSkipVerify?: boolean | undefined;
}

/** TlsOptions with paths in place of texts. */
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

/**
 * Reads the files (Node's errors name the path). @param read gives the bytes of a file; from the
 * disk if it is not given
 */
export function readTlsFiles(
  files: TlsFiles,
  read: (path: string) => Buffer = (path) => readFileSync(path),
): TlsOptions {
  const { certFile, keyFile, clientCertFile, clientKeyFile, trustedCaFile, crlFile, ...rest } =
    files;
  const text = (path: string): string => read(path).toString("utf8");
  return {
    ...rest,
    certPem: text(certFile),
    keyPem: text(keyFile),
    clientCertPem: clientCertFile ? text(clientCertFile) : undefined,
    clientKeyPem: clientKeyFile ? text(clientKeyFile) : undefined,
    trustedCaPem: trustedCaFile ? text(trustedCaFile) : undefined,
    ...(crlFile ? revocationsOf(crlFile, read(crlFile)) : { revokedSerials: undefined }),
  };
}

function revocationsOf(
  crlFile: string,
  list: Buffer,
): Pick<TlsOptions, "revokedSerials" | "crlNextUpdateMs"> {
  try {
    return { revokedSerials: revokedSerials(list), crlNextUpdateMs: crlNextUpdateMs(list) };
  } catch (error) {
    throw new Error(`${crlFile}: ${(error as Error).message}`);
  }
}

function contextOptions(
  options: TlsOptions,
  certPem: string,
  keyPem: string,
): SecureContextOptions {
  return {
    cert: certPem,
    key: keyPem,
    ca: options.trustedCaPem,
    minVersion: options.minVersion ?? "TLSv1.2",
    maxVersion: options.maxVersion ?? "TLSv1.3",
    ciphers: options.ciphers,
  };
}

/** True if those who dial in must show a certificate. */
export function demandsClientCertificate(options: TlsOptions): boolean {
  return options.clientCertAuth === true || options.trustedCaPem !== undefined;
}

/** Options for tls.createServer. Protocols are offered by ALPN in the order given. */
export function serverTlsOptions(
  options: TlsOptions,
  alpnProtocols: string[],
): NodeTlsOptions & CommonConnectionOptions {
  const demand = demandsClientCertificate(options);
  return {
    ...contextOptions(options, options.certPem, options.keyPem),
    ALPNProtocols: alpnProtocols,
    requestCert: demand,
    rejectUnauthorized: demand,
  };
}

/**
 * Options for tls.connect to `host`, which the server's certificate must be made out for unless
 * `serverName` says another name.
 */
export function clientTlsOptions(
  options: TlsOptions,
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
    // An address is no server name in TLS, but the certificate is still checked against it.
    servername: isIP(name) === 0 ? name : "",
    checkServerIdentity: (_dialled, certificate) => checkServerIdentity(name, certificate),
    rejectUnauthorized: options.insecureSkipVerify !== true,
  };
}

/** The common name of a certificate's subject, or "". */
export function commonName(certificate: X509Certificate): string {
  // The legacy form is the one without escapes. Of several names the last counts, as in Go.
  const names: string | string[] | undefined = certificate.toLegacyObject().subject?.CN;
  return (Array.isArray(names) ? names.at(-1) : names) ?? "";
}

/** DNS names and addresses that a certificate is made out for. */
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

function madeOutFor(certificate: X509Certificate, host: string): boolean {
  return (
    (isIP(host) === 0
      ? certificate.checkHost(host, { subject: "never" })
      : certificate.checkIP(host)) !== undefined
  );
}

/**
 * Why the other side's certificate is not taken although its chain is good, or undefined if it is:
 * allowed names, revoked serials, and no certificate at all where one is demanded. Both sides of a
 * connection call it, as in etcd.
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
  if (hosts.length > 0 && !hosts.some((host) => madeOutFor(certificate, host)))
    return "client certificate authentication failed";
  if (options.revokedSerials !== undefined) {
    for (
      let link: X509Certificate | undefined = certificate;
      link !== undefined;
      link = link.issuerCertificate
    ) {
      const serial = plainSerial(link.serialNumber);
      if (options.revokedSerials.has(serial))
        return `transport: certificate serial ${serial.toLowerCase()} revoked`;
      if (link.issuerCertificate === link) break;
    }
  }
  return undefined;
}

/**
 * The names of an address: those of the DNS, and that of the system's resolver, which knows
 * /etc/hosts; `reverse` leaves that out.
 */
async function namesOf(address: string): Promise<string[]> {
  const [all, { hostname }] = await Promise.all([
    reverse(address).catch(() => []),
    lookupService(address, 0).catch(() => ({ hostname: address })),
  ]);
  return [...all, hostname].map((name) => name.replace(/\.$/, ""));
}

/**
 * Why a peer's certificate does not fit the address that it dials from, or undefined: an address or
 * a DNS name in it must lead there. One that carries neither is taken. Looks names up, so it may
 * take as long as the resolver does.
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

/** Go's words, which etcd's users search their logs for, by the code of Node's error. */
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
 * What went wrong in a handshake, in Go's words where they exist. The socket knows why a
 * certificate was refused; the error often does not.
 */
export function handshakeFailure(error: Error & { code?: string }, socket?: TLSSocket): string {
  // Typed as Error, it is a code.
  const refusal = socket?.authorizationError as unknown;
  const refused = typeof refusal === "string" && refusal !== "";
  const code = refused ? refusal : (error.code ?? "");
  // On the side that refuses, the error may be no more than the end of the connection.
  return REASONS[code] ?? (refused && error.code !== refusal ? refusal : firstLine(error.message));
}

function firstLine(text: string): string {
  const end = text.indexOf("\n");
  return end === -1 ? text : text.slice(0, end);
}

function plainSerial(hex: string): string {
  return hex.toUpperCase().replace(/^0+(?=.)/, "");
}

/**
 * Serial numbers in a certificate revocation list (RFC 5280 section 5), DER or PEM. The signature
 * is not checked, as in etcd. Throws on what is not one.
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
 * When the next edition of a certificate revocation list is due, in milliseconds since 1970;
 * undefined where it does not say.
 */
export function crlNextUpdateMs(list: Uint8Array): number | undefined {
  const times = crlsOf(list).flatMap((parts) => nextUpdateMs(parts) ?? []);
  return times.length === 0 ? undefined : Math.min(...times);
}

function nextUpdateMs(parts: readonly DerItem[]): number | undefined {
  // The times are thisUpdate and, if it is there, nextUpdate.
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
 * One list in DER, or any number in PEM: there is one for each authority of a bundle.
 */
function crlsOf(list: Uint8Array): DerItem[][] {
  const text = Buffer.from(list).toString("latin1");
  const pems = [...text.matchAll(/-----BEGIN X509 CRL-----([\s\S]*?)-----END X509 CRL-----/g)];
  if (pems.length !== text.split("-----BEGIN X509 CRL-----").length - 1)
    throw new Error("a certificate revocation list in it is cut short");
  const ders =
    pems.length > 0 ? pems.map((pem) => Buffer.from(pem[1], "base64")) : [Buffer.from(list)];
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
