/**
 * Numbers of HTTP/2 (RFC 9113): frame types, flags, settings, error codes, and the bounds that the
 * protocol itself sets.
 */

/** Section 6. */
export const FrameType = {
  Data: 0,
  Headers: 1,
  Priority: 2,
  RstStream: 3,
  Settings: 4,
  PushPromise: 5,
  Ping: 6,
  GoAway: 7,
  WindowUpdate: 8,
  Continuation: 9,
} as const;

export const Flag = {
  /** DATA, HEADERS: the last frame of its kind on the stream. */
  EndStream: 0x1,
  /** SETTINGS, PING. */
  Ack: 0x1,
  EndHeaders: 0x4,
  Padded: 0x8,
  Priority: 0x20,
} as const;

/** Section 6.5.2. */
export const Setting = {
  HeaderTableSize: 1,
  EnablePush: 2,
  MaxConcurrentStreams: 3,
  InitialWindowSize: 4,
  MaxFrameSize: 5,
  MaxHeaderListSize: 6,
} as const;

/** Section 7. */
export const ErrorCode = {
  NoError: 0,
  ProtocolError: 1,
  InternalError: 2,
  FlowControlError: 3,
  SettingsTimeout: 4,
  StreamClosed: 5,
  FrameSizeError: 6,
  RefusedStream: 7,
  Cancel: 8,
  CompressionError: 9,
  ConnectError: 10,
  EnhanceYourCalm: 11,
} as const;

/** What a client's connection opens with (section 3.4), one char a byte. */
export const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** Length, type, flags and stream of each frame (section 4.1). */
export const FRAME_HEADER_BYTES = 9;

/**
 * The longest payload before anyone has allowed more, and the most that we allow: larger frames
 * only make a connection's calls wait for each other.
 */
export const DEFAULT_MAX_FRAME_BYTES = 16_384;
export const LARGEST_MAX_FRAME_BYTES = 16_777_215;

/** The windows before anyone has said otherwise, and the largest that there are (section 6.9). */
export const DEFAULT_WINDOW_BYTES = 65_535;
export const MAX_WINDOW_BYTES = 2 ** 31 - 1;

export const MAX_STREAM_ID = 2 ** 31 - 1;
