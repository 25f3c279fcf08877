/**
 * Validates the TLS files of a port, with errors that name the file. OpenSSL's errors ("key values
 * mismatch", "no start line") name none, and occur only when a port is opened.
 */

import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { pemBlocks } from "../src/pem.ts";
import type { Pauses } from "../src/turns.ts";
import { serverTlsOptions, type TlsFiles, type TlsOptions } from "./tls.ts";

/** A certificate's file and its expiry, in milliseconds since 1970. */
export interface Expiry {
  readonly file: string;
  readonly notAfterMs: number;
}

/** Certificates in a file; a context of more would hold the event loop for too long. */
export const MAX_FILE_CERTIFICATES = 200;

/**
 * Rejects with an Error that names the file and its problem if a port cannot be opened with these
 * options.
 * @param files the paths that the options were read from
 * @returns the expiry of each certificate: its own (the first of each chain) and its trusted CAs
 */
export async function checkTlsOptions(
  files: TlsFiles,
  options: TlsOptions,
  pauses: Pauses,
): Promise<readonly Expiry[]> {
  const expiries: Expiry[] = [];
  const note = (file: string, { validToDate }: X509Certificate) =>
    void expiries.push({ file, notAfterMs: validToDate.getTime() });
  note(files.certFile, checkPair(options.certPem, files.certFile, options.keyPem, files.keyFile));
  if (options.clientCertPem !== undefined && options.clientKeyPem !== undefined) {
    const file = files.clientCertFile ?? "";
    const keyFile = files.clientKeyFile ?? "";
    note(file, checkPair(options.clientCertPem, file, options.clientKeyPem, keyFile));
  }
  if (options.trustedCaPem !== undefined) {
    const file = files.trustedCaFile ?? "";
    for (const certificate of certificatesOf(options.trustedCaPem, file)) {
      note(file, certificate);
      await pauses.next();
    }
  }
  await pauses.next();
  // Other problems, with OpenSSL's text: for example an unknown cipher.
  createSecureContext(serverTlsOptions(options, []));
  return expiries;
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
          ...Array.from(certificatesOf(pem, ""), ({ validToDate }) => validToDate.getTime()),
        );
  return { own: first(certPem), dialling: first(clientCertPem), authorities: first(trustedCaPem) };
}

/** The certificate of a pair. Throws for a key that is another's, or that cannot be read. */
function checkPair(
  certPem: string,
  certFile: string,
  keyPem: string,
  keyFile: string,
): X509Certificate {
  const [certificate] = certificatesOf(certPem, certFile);
  if (certificate === undefined) throw new Error(`${certFile} contains no certificate`);
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
  return certificate;
}

/** The certificates of a PEM text, in order, at least one, each read when it is asked for. */
function* certificatesOf(pem: string, file: string): Generator<X509Certificate> {
  const texts = pemBlocks(pem, "CERTIFICATE").map(({ text }) => text);
  if (texts.length === 0)
    throw new Error(
      `${file} contains no complete certificate in PEM (-----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----)`,
    );
  // A bundle that is still being written must not count as one with fewer CAs.
  if (texts.length !== pem.split("-----BEGIN CERTIFICATE-----").length - 1)
    throw new Error(`${file}: it contains a truncated certificate`);
  if (texts.length > MAX_FILE_CERTIFICATES)
    throw new Error(
      `${file} contains ${texts.length} certificates; at most ${MAX_FILE_CERTIFICATES} are read`,
    );
  for (const [i, text] of texts.entries()) {
    let certificate: X509Certificate;
    try {
      certificate = new X509Certificate(text);
    } catch (error) {
      throw new Error(
        `${file}: certificate ${i + 1} of ${texts.length} is damaged (${(error as Error).message})`,
      );
    }
    yield certificate;
  }
}
