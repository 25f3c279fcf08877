/** HTTP requests and responses for endpoints, independent of server and protocol version. */

/** A request with its whole body. */
export interface HttpRequest {
  readonly method: string;
  /** The path without its query, such as "/health". */
  readonly path: string;
  /** The query without "?", as sent. */
  readonly query: string;
  /** By lower-case name; repeated ones joined by ", ". HTTP/2's :authority is "host". */
  readonly headers: ReadonlyMap<string, string>;
  /** The values of names that came more than once, where the way to the handler keeps them. */
  readonly repeatedHeaders?: ReadonlyMap<string, readonly string[]> | undefined;
  readonly body: Uint8Array;
  readonly peerAddress: string;
  readonly peerCommonName: string | undefined;
  /** The whole subject of that certificate on one line. */
  readonly peerSubject?: string | undefined;
  /** The organizations (O) of the client's certificate, where it has one and it verifies. */
  readonly peerOrganizations?: readonly string[];
  /** SHA-256 of that certificate (DER), in lower-case hexadecimal. */
  readonly peerCertificateSha256?: string;
  /** Why the client's certificate does not verify, on ports where certificates are optional. */
  readonly peerCertificateError?: string;
  /** The common name of that certificate, if an authority of proxies has signed it. */
  readonly peerProxyName?: string;
  /** Whether the connection uses TLS; undefined counts as no. */
  readonly isSecure?: boolean;
}

/** A response. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | string;
}

/** Handles HTTP requests. */
export type HttpHandler = (request: HttpRequest) => HttpResponse | Promise<HttpResponse>;

/** Plain text in the form of Go's http.Error, which clients of these endpoints have always seen. */
export function plainError(
  status: number,
  text: string,
  headers: Record<string, string> = {},
): HttpResponse {
  return {
    status,
    headers: {
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
      ...headers,
    },
    body: `${text}\n`,
  };
}
