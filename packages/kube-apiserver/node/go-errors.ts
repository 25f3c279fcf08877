/** The words of Go's net/http for a call that failed, which operators know and alerts look for. */

/** OpenSSL's verdicts on a certificate of an unknown authority. */
const UNKNOWN_AUTHORITY = new Set([
  "CERT_SIGNATURE_FAILURE",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** Why a call with node:https or undici failed. */
export function goReason(error: unknown): string {
  const { code, message, address, port, hostname, syscall } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
    hostname?: string;
  };
  if (code === "ECONNREFUSED" && address !== undefined) {
    return `dial tcp ${address}:${port}: connect: connection refused`;
  }
  if (syscall === "getaddrinfo") return `dial tcp: lookup ${hostname}: no such host`;
  if (code === "ECONNRESET" || code === "UND_ERR_SOCKET") return "EOF";
  if (UNKNOWN_AUTHORITY.has(code ?? ""))
    return "tls: failed to verify certificate: x509: certificate signed by unknown authority";
  if (/certificate|^ERR_TLS|SELF_SIGNED|CERT_/i.test(`${code} ${message}`)) {
    return `tls: failed to verify certificate: x509: ${message}`;
  }
  return message;
}
