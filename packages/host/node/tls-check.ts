/**
 * What can be wrong with the files of one port's TLS, in words that name the file. OpenSSL's own
 * ("key values mismatch", "no start line") name none, and come only when a port is opened.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { serverTlsOptions, type TlsFiles, type TlsOptions } from "./tls.ts";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/**
 * Throws, with the file's name and what is wrong with it, if a port cannot be opened with these
 * options, which were read from `files`.
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
  // What else there may be, in OpenSSL's words: a cipher that it does not know, say.
  createSecureContext(serverTlsOptions(options, []));
}

/** A certificate's file and the end of its time, in milliseconds since 1970. */
export interface Expiry {
  readonly file: string;
  readonly notAfterMs: number;
}

/**
 * When each certificate of a port ends: its own (the first of each chain), and those of the
 * authorities that it trusts.
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
 * The ends of a port's certificates in milliseconds since 1970; undefined for what it does not
 * have.
 */
export interface TlsExpiries {
  /** Its own certificate, or what ends first of that one's chain. */
  readonly own: number | undefined;
  /** The one that it shows when it dials, where that is another. */
  readonly dialling: number | undefined;
  /** The first of the authorities that it trusts. */
  readonly authorities: number | undefined;
}

/** When what `options` hold ends. */
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
      `${keyFile} holds no private key in PEM that can be read without a passphrase (${(error as Error).message})`,
    );
  }
  if (!certificate!.checkPrivateKey(key)) {
    throw new Error(
      `${keyFile} is not the key of the certificate in ${certFile} (key values mismatch): give the two that were made together`,
    );
  }
}

/** The certificates of a PEM text, in order, at least one. */
function certificatesOf(pem: string, file: string): readonly X509Certificate[] {
  const texts = pem.match(CERTIFICATE) ?? [];
  if (texts.length === 0)
    throw new Error(
      `${file} holds no whole certificate in PEM (-----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----)`,
    );
  // A bundle that is being written must not be taken for one with fewer authorities.
  if (texts.length !== pem.split("-----BEGIN CERTIFICATE-----").length - 1)
    throw new Error(`${file}: a certificate in it is cut short`);
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
