/**
 * What one connection may cost. Every bound has its unit in its name; docs/LIMITS.md lists them.
 */
export interface Http2Limits {
  /** Streams open at once, and calls still worked on although their client has left. Advertised. */
  readonly maxConcurrentStreams: number;
  /** What a client may send on a stream before we have taken it. Advertised. */
  readonly streamWindowBytes: number;
  /** What a client may send on all streams before it hears from us; at least 65,535. */
  readonly connectionWindowBytes: number;
  /**
   * A request's fields, counted as RFC 9113 section 6.5.2 does. Advertised; a longer list is
   * refused with status 431.
   */
  readonly maxHeaderListBytes: number;
  /**
   * A header block as it comes over the wire, and the CONTINUATION frames that it comes in; the
   * connection ends beyond.
   */
  readonly maxHeaderBlockBytes: number;
  readonly maxContinuationFrames: number;
  /** Bytes of requests that are being received or worked on; requests beyond are refused. */
  readonly maxHeldBytes: number;
  /**
   * Bytes that open streams take by themselves, their headers above all; requests beyond are
   * refused.
   */
  readonly maxHeadBytes: number;
  /** Bytes of answers that wait for the client's windows; streams beyond are cut off. */
  readonly maxPendingBytes: number;
  /** DATA is framed as long as fewer bytes than this wait for the socket. */
  readonly outputTargetBytes: number;
  /** Nothing more is read while more bytes than this wait for the socket. */
  readonly maxOutputBytes: number;
  /**
   * Frames that move nothing: SETTINGS, PING, PRIORITY, WINDOW_UPDATE, empty DATA, unknown types,
   * frames for closed streams. So many at once and then so many a second; each frame of ours that
   * moves something allows some more.
   */
  readonly maxIdleFramesBurst: number;
  readonly maxIdleFramesPerSecond: number;
  /**
   * Streams that a client may reset: so many at once and then so many a second; each finished call
   * allows one more (CVE-2023-44487).
   */
  readonly maxResetsBurst: number;
  readonly maxResetsPerSecond: number;
  /** How long the preface and the first SETTINGS may take. */
  readonly prefaceTimeoutMs: number;
  /**
   * How long a frame, or a header block of several frames, may take from its first byte to its
   * last.
   */
  readonly frameTimeoutMs: number;
  /** How long a finished answer may wait without a byte of any finished answer leaving. */
  readonly sendStallTimeoutMs: number;
  /** How long a connection that is told to go may take to say that it heard. */
  readonly drainTimeoutMs: number;
  /** A client that pings more often than this is cut off; 0 for never. */
  readonly keepAliveMinTimeMs: number;
  /**
   * A client that has been silent for so long is pinged, and cut off if it does not answer in time;
   * 0 for never.
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
