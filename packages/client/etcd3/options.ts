/** The options of npm's etcd3, and what they become for our client. */
import type { ClientOptions, TlsOptions } from "../node/connect.ts";
import type { WaitOptions } from "../src/call-options.ts";
import { deadlineError } from "../src/errors.ts";

/** Options of one call. Those of grpc-js may be passed; the others have no effect. */
export interface CallOptions {
  /** The time at which the call has failed: a Date, or its milliseconds. */
  readonly deadline?: Date | number;
  /** Ends the call when aborted. */
  readonly signal?: AbortSignal;
}

/** One call, for a function that chooses its options. */
export interface CallContext {
  /** "KV", "Watch", "Lease", "Cluster", "Maintenance" or "Auth". */
  readonly service: string;
  /** The method, such as "leaseGrant". */
  readonly method: string;
  readonly isStream: boolean;
  /** The request; undefined for a stream. */
  readonly params?: unknown;
}

export type CallOptionsFactory = CallOptions | ((context: CallContext) => CallOptions);

/** What runs a function, once or more often: a policy of cockatiel is one. */
export interface IPolicy {
  execute<T>(run: () => T | PromiseLike<T>): Promise<T>;
}

export interface IOptions {
  /** "host:port" or URLs; all with TLS or none. */
  readonly hosts?: string | readonly string[];
  /** Certificates as PEM. */
  readonly credentials?: {
    readonly rootCertificate?: Uint8Array;
    readonly privateKey?: Uint8Array;
    readonly certChain?: Uint8Array;
  };
  /** Of grpc-js; KNOWN_CHANNEL_OPTIONS have an effect. */
  readonly grpcOptions?: Readonly<Record<string, unknown>>;
  readonly auth?: {
    readonly username: string;
    readonly password: string;
    /** Options of the calls for a token. */
    readonly callOptions?: CallOptionsFactory;
  };
  /** Options of calls that name none of their own. */
  readonly defaultCallOptions?: CallOptionsFactory;
  /** Milliseconds until the next host is tried; default 2000. */
  readonly dialTimeout?: number;
  readonly faultHandling?: {
    /** Runs every call. The client goes to another host by itself, within each run. */
    readonly global?: IPolicy;
    /** Accepted without effect: the client leaves a host that fails. */
    readonly host?: (host: string) => unknown;
    /** Accepted without effect: a watch is opened again after 0.1 to 2 seconds. */
    readonly watchBackoff?: unknown;
  };
}

/** Channel options of grpc-js that have an effect, and what they are here. */
const KNOWN_CHANNEL_OPTIONS = {
  "grpc.keepalive_time_ms": "keepaliveTimeMs",
  "grpc.keepalive_timeout_ms": "keepaliveTimeoutMs",
  "grpc.max_send_message_length": "maxRequestBytes",
  "grpc.max_receive_message_length": "maxResponseBytes",
} as const;

/** Throws Error for hosts of which only some use TLS, and for none. */
export function clientOptions(options: IOptions): ClientOptions {
  const { hosts = "127.0.0.1:2379", auth, dialTimeout } = options;
  const all = typeof hosts === "string" ? [hosts] : hosts;
  if (all.length === 0) throw new Error("etcd3 needs at least one host");
  const tls = tlsOptions(options, all);
  return {
    endpoints: all.map((host) => host.replace(/^https?:\/\//, "")),
    ...(tls === undefined ? {} : { tls }),
    ...(auth === undefined ? {} : { auth: { name: auth.username, password: auth.password } }),
    ...(dialTimeout === undefined ? {} : { dialTimeoutMs: dialTimeout }),
    ...channelOptions(options.grpcOptions ?? {}),
  };
}

function tlsOptions(
  { credentials, grpcOptions }: IOptions,
  hosts: readonly string[],
): TlsOptions | undefined {
  const secure = hosts.filter((host) => host.startsWith("https:")).length;
  const serverName = grpcOptions?.["grpc.ssl_target_name_override"];
  const named = typeof serverName === "string" ? { serverName } : {};
  if (credentials !== undefined) {
    const { rootCertificate: ca, privateKey: key, certChain: cert } = credentials;
    return { ca, key, cert, ...named };
  }
  if (secure > 0 && secure < hosts.length)
    throw new Error("etcd3 cannot be configured with a mix of secure and insecure hosts");
  return secure > 0 ? named : undefined;
}

function channelOptions(given: Readonly<Record<string, unknown>>): Partial<ClientOptions> {
  const entries = Object.entries(KNOWN_CHANNEL_OPTIONS).flatMap(([theirs, ours]) => {
    const value = given[theirs];
    // -1 is no limit.
    return typeof value === "number" && value >= 0 ? [[ours, value]] : [];
  });
  return Object.fromEntries(entries);
}

/** The options of a call over the default ones. */
export function resolveCallOptions(
  own: CallOptions | undefined,
  defaults: CallOptionsFactory | undefined,
  context: CallContext,
): CallOptions {
  return { ...(typeof defaults === "function" ? defaults(context) : defaults), ...own };
}

/** The deadline as a timeout. Throws ClientError DeadlineExceeded for one that has passed. */
export function waitOptions({ deadline, signal }: CallOptions): WaitOptions {
  const wait = signal === undefined ? {} : { signal };
  if (deadline === undefined) return wait;
  const timeoutMs = Number(deadline) - Date.now();
  if (timeoutMs <= 0) throw deadlineError();
  return { ...wait, timeoutMs };
}
