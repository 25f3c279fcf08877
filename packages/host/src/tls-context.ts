/**
 * The options of a TLS context, for Node's tls, https and undici alike. All that opens TLS takes
 * them from here (a house rule holds that), so that a certificate is trusted everywhere or nowhere.
 */

/** What a context is made of; PEM texts or bytes, each of which may hold several certificates. */
export interface TlsContextParts<Pem extends string | Uint8Array> {
  /** Certificates that are trusted, whatever they are; the system's CAs if undefined. */
  readonly trusted: Pem | undefined;
  /** The own certificate with its chain, and its key. */
  readonly cert?: Pem | undefined;
  readonly key?: Pem | undefined;
  /** Default TLS 1.2. */
  readonly minVersion?: "TLSv1.2" | "TLSv1.3" | undefined;
  /** Default TLS 1.3. */
  readonly maxVersion?: "TLSv1.2" | "TLSv1.3" | undefined;
  /** Cipher suites by OpenSSL's names, joined by colons; default the platform's. */
  readonly ciphers?: string | undefined;
}

/**
 * Options for createSecureContext, or for whatever makes a context of its options.
 *
 * As in Go, each trusted certificate is an anchor: an intermediate CA without its root, and a
 * server's own certificate. OpenSSL alone goes on to a root that is signed by itself.
 */
export function tlsContext<Pem extends string | Uint8Array>(parts: TlsContextParts<Pem>) {
  return {
    ca: parts.trusted,
    cert: parts.cert,
    key: parts.key,
    minVersion: parts.minVersion ?? "TLSv1.2",
    maxVersion: parts.maxVersion ?? "TLSv1.3",
    ciphers: parts.ciphers,
    allowPartialTrustChain: true,
  } as const;
}
