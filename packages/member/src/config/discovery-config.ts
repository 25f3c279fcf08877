/** The settings of discovery by a token. */

/** etcd's discovery service: another cluster, in which members register (v3discovery). */
export interface DiscoveryConfig {
  readonly endpoints: readonly string[];
  readonly token: string;
  readonly dialTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly keepaliveTimeMs: number;
  readonly keepaliveTimeoutMs: number;
  /** Endpoints without a scheme are called without TLS. */
  readonly insecureTransport: boolean;
  readonly insecureSkipVerify: boolean;
  /** Paths of PEM files; empty for none. */
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
  readonly auth: { readonly name: string; readonly password: string } | undefined;
}
