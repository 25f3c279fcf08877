/**
 * Validates the TLS files of a port, with errors that name the file. OpenSSL's errors ("key values
 * mismatch", "no start line") name none, and occur only when a port is opened.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { pemBlocks } from "../src/pem.ts";
import { serverTlsOptions, type TlsFiles, type TlsOptions } from "./tls.ts";

/**
 * Throws an Error that names the file and its problem if a port cannot be opened with these
 * options.
 * @param files the paths that the options were read from
 */
export function checkTlsOptions(files: TlsFiles, options: TlsOptions): void {
  checkPair(options.certPem, files.certFile, options.keyPem, files.keyFile);
  if (options.clientCertPem !== undefined && options.clientKeyPem !== undefined) {
    checkPair(
      options.clientCertPem,
      files.clientCertFile ?? "",
      options.clientKeyPem,
      files.clientKeyFile ?? "",
    );
  }
  if (options.trustedCaPem !== undefined)
    certificatesOf(options.trustedCaPem, files.trustedCaFile ?? "");
  // Other problems, with OpenSSL's text: for example an unknown cipher.
  createSecureContext(serverTlsOptions(options, []));
}

/** A certificate's file and its expiry, in milliseconds since 1970. */
export interface Expiry {
  readonly file: string;
  readonly notAfterMs: number;
}

/**
 * The expiry of each certificate of a port: its own (the first of each chain) and its trusted CAs.
 */
export function certificateExpiries(files: TlsFiles, options: TlsOptions): readonly Expiry[] {
  const own = [
    [options.certPem, files.certFile, 1],
    [options.clientCertPem, files.clientCertFile, 1],
    [options.trustedCaPem, files.trustedCaFile, Number.POSITIVE_INFINITY],
  ] as const;
  return own.flatMap(([pem, file, most]) => {
    if (pem === undefined || file === undefined) return [];
    return certificatesOf(pem, file)
      .slice(0, most)
      .map((certificate) => ({ file, notAfterMs: certificate.validToDate.getTime() }));
  });
}

/**
 * The expiries of a port's certificates in milliseconds since 1970; undefined for missing ones.
 */
export interface TlsExpiries {
  /** Its own certificate's chain: the earliest expiry. */
  readonly own: number | undefined;
  /** Its client certificate, if different. */
  readonly dialling: number | undefined;
  /** The earliest expiry of its trusted CAs. */
  readonly authorities: number | undefined;
}

/** The expiries of the certificates in `options`. */
export function tlsExpiries({ certPem, clientCertPem, trustedCaPem }: TlsOptions): TlsExpiries {
  const first = (pem: string | undefined): number | undefined =>
    pem === undefined
      ? undefined
      : Math.min(
          ...certificatesOf(pem, "").map((certificate) => certificate.validToDate.getTime()),
        );
  return { own: first(certPem), dialling: first(clientCertPem), authorities: first(trustedCaPem) };
}

function checkPair(certPem: string, certFile: string, keyPem: string, keyFile: string): void {
  const [certificate] = certificatesOf(certPem, certFile);
  let key: KeyObject;
  try {
    key = createPrivateKey(keyPem);
  } catch (error) {
    throw new Error(
      `${keyFile} contains no private key in PEM that can be read without a passphrase (${(error as Error).message})`,
    );
  }
  if (!certificate.checkPrivateKey(key)) {
    throw new Error(
      `${keyFile} is not the key of the certificate in ${certFile} (key values mismatch): use a certificate with its own key`,
    );
  }
}

/** The certificates of a PEM text, in order, at least one. */
function certificatesOf(pem: string, file: string): readonly X509Certificate[] {
  const texts = pemBlocks(pem, "CERTIFICATE").map(({ text }) => text);
  if (texts.length === 0)
    throw new Error(
      `${file} contains no complete certificate in PEM (-----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----)`,
    );
  // A bundle that is still being written must not count as one with fewer CAs.
  if (texts.length !== pem.split("-----BEGIN CERTIFICATE-----").length - 1)
    throw new Error(`${file}: it contains a truncated certificate`);
  return texts.map((text, i) => {
    try {
      return new X509Certificate(text);
    } catch (error) {
      throw new Error(
        `${file}: certificate ${i + 1} of ${texts.length} is damaged (${(error as Error).message})`,
      );
    }
  });
}
