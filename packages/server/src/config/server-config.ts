/**
 * What a member is started with: everything read, checked and resolved. It is plain data and never
 * changes.
 */
import type { SelfCertConfig } from "@quorate/host";
import type { JwtSettings, MemberConfig } from "@quorate/member";
import type { HttpAccess } from "@quorate/services";
import type { LogRotationConfig } from "./log-rotation.ts";
import type { PlainConfig } from "./options.ts";

/** TLS for one side of the member. Paths name PEM files; an empty path means none. */
export interface TlsConfig {
  readonly certFile: string;
  readonly keyFile: string;
  /** What to show as a client; the pair above where these are empty. */
  readonly clientCertFile: string;
  readonly clientKeyFile: string;
  readonly trustedCaFile: string;
  readonly crlFile: string;
  /**
   * True if a client must show a certificate from `trustedCaFile` (or from the system's CAs
   * if that is empty).
   */
  readonly requireClientCert: boolean;
  /**
   * --client-cert-auth as given: on the client port it also lets the certificate's common name be
   * the user's name.
   */
  readonly clientCertAuth: boolean;
  /** If not empty, the certificate's common name must be one of these. */
  readonly allowedCommonNames: readonly string[];
  /** If not empty, the certificate must be good for one of these hosts. */
  readonly allowedHostnames: readonly string[];
  /** Do not compare the remote address with the names in its certificate. */
  readonly skipClientSanVerify: boolean;
  /**
   * TLS 1.2 suites under OpenSSL's names, joined by colons (Node's `ciphers`); undefined leaves the
   * choice to Node.
   */
  readonly ciphers: string | undefined;
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  readonly maxVersion: "TLSv1.2" | "TLSv1.3";
  /**
   * The name that the certificate of a member must carry that this one connects to; empty for the
   * host that it connects to.
   */
  readonly serverName: string;
  /**
   * The certificate that the member makes for itself where it is not there yet; undefined if others
   * have made it.
   */
  readonly selfCert: SelfCertConfig | undefined;
}

/** The lowest level that is logged; "fatal" leaves only what ends the process. */
export type LogThreshold = "debug" | "info" | "warn" | "error" | "fatal";

/** Where logs go. */
export type LogOutput =
  | { readonly kind: "stderr" }
  | { readonly kind: "stdout" }
  | { readonly kind: "file"; readonly path: string };

export interface LogConfig {
  readonly level: LogThreshold;
  /** "auto": console on a terminal, json elsewhere. */
  readonly format: "json" | "console" | "auto";
  /** At least one; each once. */
  readonly outputs: readonly LogOutput[];
  /** When the file among them is moved away; undefined for never. */
  readonly rotation: LogRotationConfig | undefined;
}

/** The audit log. */
export interface AuditConfig {
  /** A path, or "-" for standard output. */
  readonly path: string;
  readonly level: "metadata" | "request";
  /** Prefixes of keys; empty for all keys. */
  readonly prefixes: readonly string[];
  /** 1 or more. */
  readonly readSampling: number;
  readonly onFailure: "drop" | "refuse";
  /** 0 for no rotation. */
  readonly maxFileBytes: number;
  readonly maxFileAgeMs: number;
  readonly keepFiles: number;
}

/** Distributed tracing. */
export interface TracingConfig {
  readonly isOn: boolean;
  /** The collector's host and port. */
  readonly address: string;
  readonly serviceName: string;
  /** Empty where none was given. */
  readonly instanceId: string;
  /** Of a million traces that begin here so many are kept. */
  readonly samplingRate: number;
}

export interface KeepaliveConfig {
  readonly minTimeMs: number;
  /** 0 turns the server's pings off. */
  readonly intervalMs: number;
  /** 0: do not close. */
  readonly timeoutMs: number;
}

/** The declarations of the options name the fields that they fill as they are (`PlainConfig`). */
export interface ServerConfig extends PlainConfig, MemberConfig {
  /** TLS on the client port; undefined if no certificate is configured. */
  readonly clientTls: TlsConfig | undefined;
  /** TLS between members; undefined if no certificate is configured. */
  readonly peerTls: TlsConfig | undefined;

  /** A connection to a peer without any bytes for so long is closed; at least 5000. */
  readonly raftReadTimeoutMs: number;
  /** The local address of connections to peers; undefined: the system chooses. */
  readonly localAddress: string | undefined;

  readonly grpcKeepalive: KeepaliveConfig;

  readonly http: HttpConfig;

  /** Threads that own client connections; 0 for none. */
  readonly frontendThreads: number | "auto";

  /** How users' tokens are signed and checked; undefined for simple tokens. */
  readonly jwt: JwtSettings | undefined;

  readonly tracing: TracingConfig;
  /** Undefined for none. */
  readonly audit: AuditConfig | undefined;
  readonly log: LogConfig;
}

/** What the HTTP side of the client port serves, and to which clients. */
export interface HttpConfig extends HttpAccess {
  /** Whether /v3/ is served. */
  readonly isGatewayOn: boolean;
  /** Whether /kv/, /watch/ and /txn are served. */
  readonly areKeysOn: boolean;
  /** Whether /console/ is served. */
  readonly isConsoleOn: boolean;
}

/** A log line for the operator, written once there is a logger. */
export interface Notice {
  readonly level: "info" | "warn";
  readonly msg: string;
  readonly fields: Readonly<Record<string, string | number | boolean | readonly string[]>>;
}
