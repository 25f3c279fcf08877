/**
 * The limits of one connection. Every limit has its unit in its name; docs/reference/limits.md
 * lists them.
 */
export interface Http2Limits {
  /** Open streams, plus running calls whose stream was reset. Advertised. */
  readonly maxConcurrentStreams: number;
  /** Bytes that a client may send on a stream before it is credited. Advertised. */
  readonly streamWindowBytes: number;
  /** Bytes that a client may send on all streams before it is credited; at least 65,535. */
  readonly connectionWindowBytes: number;
  /**
   * A request's header list, counted as in RFC 9113 section 6.5.2. Advertised; a longer list is
   * refused with status 431.
   */
  readonly maxHeaderListBytes: number;
  /**
   * The encoded size of a header block, and the CONTINUATION frames it arrives in; beyond them the
   * connection ends.
   */
  readonly maxHeaderBlockBytes: number;
  readonly maxContinuationFrames: number;
  /** Bytes of requests that are being received or processed; requests beyond are refused. */
  readonly maxHeldBytes: number;
  /**
   * Bytes that open streams take by themselves, mostly their headers; requests beyond are refused.
   */
  readonly maxHeadBytes: number;
  /** Bytes of responses that wait for the client's windows; streams beyond are cut off. */
  readonly maxPendingBytes: number;
  /** DATA is framed while fewer bytes than this wait for the socket. */
  readonly outputTargetBytes: number;
  /** Reading stops while more bytes than this wait for the socket. */
  readonly maxOutputBytes: number;
  /**
   * Frames that move nothing: SETTINGS, PING, PRIORITY, WINDOW_UPDATE, empty DATA, unknown types,
   * frames for closed streams. A burst, and then a rate per second; each sent frame with content
   * allows some more.
   */
  readonly maxIdleFramesBurst: number;
  readonly maxIdleFramesPerSecond: number;
  /**
   * Streams that a client may reset: a burst, and then a rate per second; each finished call allows
   * one more (CVE-2023-44487).
   */
  readonly maxResetsBurst: number;
  readonly maxResetsPerSecond: number;
  /** Maximum time until the preface and the first SETTINGS are complete. */
  readonly prefaceTimeoutMs: number;
  /**
   * Maximum time of a frame, or of a header block of several frames, from its first byte to its
   * last.
   */
  readonly frameTimeoutMs: number;
  /** Maximum time that finished responses may wait without any of their bytes leaving. */
  readonly sendStallTimeoutMs: number;
  /** Maximum time for a client to acknowledge the first GOAWAY of a drain. */
  readonly drainTimeoutMs: number;
  /**
   * Minimum time between pings of a client; more frequent pings end the connection. 0 for no limit.
   */
  readonly keepAliveMinTimeMs: number;
  /**
   * A client that was silent for this long is pinged, and cut off if it does not acknowledge in
   * time; 0 for never.
   */
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

const KIB = 1024;
const MIB = 1024 * KIB;

export const DEFAULT_HTTP2_LIMITS: Http2Limits = {
  maxConcurrentStreams: 65_536,
  streamWindowBytes: 256 * KIB,
  connectionWindowBytes: 2 * MIB,
  maxHeaderListBytes: 64 * KIB,
  maxHeaderBlockBytes: 64 * KIB,
  maxContinuationFrames: 32,
  maxHeldBytes: 64 * MIB,
  maxHeadBytes: 64 * MIB,
  maxPendingBytes: 256 * MIB,
  outputTargetBytes: 256 * KIB,
  maxOutputBytes: MIB,
  maxIdleFramesBurst: 10_000,
  maxIdleFramesPerSecond: 2_000,
  maxResetsBurst: 10_000,
  maxResetsPerSecond: 1_000,
  prefaceTimeoutMs: 10_000,
  frameTimeoutMs: 30_000,
  sendStallTimeoutMs: 120_000,
  drainTimeoutMs: 5_000,
  keepAliveMinTimeMs: 5_000,
  keepAliveIntervalMs: 7_200_000,
  keepAliveTimeoutMs: 20_000,
};
