/** The limits of a client's connection; docs/reference/limits.md lists them. */
export interface ClientLimits {
  /** The user-agent of each call. */
  readonly userAgent: string;
  /** Longest message of a response. */
  readonly maxMessageBytes: number;
  /** Calls that may be open at one time, if the server allows more. */
  readonly maxConcurrentCalls: number;
  /** Bytes that the server may send on one stream, and on all, before they are credited. */
  readonly streamWindowBytes: number;
  readonly connectionWindowBytes: number;
  /** A header list, decoded; and the size of its block. */
  readonly maxHeaderListBytes: number;
  readonly maxContinuationFrames: number;
  /** Bytes of responses that are not delivered yet, of all calls. */
  readonly maxHeldBytes: number;
  /** Bytes of requests that wait for the server's windows, of all calls. */
  readonly maxPendingBytes: number;
  /** DATA is framed while fewer bytes than this wait for the socket. */
  readonly outputTargetBytes: number;
  /** A server that was silent for so long is pinged; 0 for never. */
  readonly keepAliveTimeMs: number;
  /** How long the acknowledgement of such a ping may take. */
  readonly keepAliveTimeoutMs: number;
  /** Pings also while no call is open. */
  readonly pingsWhenIdle: boolean;
}

const MIB = 1024 * 1024;

export const DEFAULT_CLIENT_LIMITS: ClientLimits = {
  userAgent: "quorate",
  maxMessageBytes: 2 ** 31 - 1,
  maxConcurrentCalls: 65_536,
  streamWindowBytes: MIB,
  connectionWindowBytes: 16 * MIB,
  maxHeaderListBytes: 64 * 1024,
  maxContinuationFrames: 32,
  maxHeldBytes: 2 ** 31,
  maxPendingBytes: 512 * MIB,
  outputTargetBytes: MIB / 4,
  keepAliveTimeMs: 0,
  keepAliveTimeoutMs: 20_000,
  pingsWhenIdle: false,
};
