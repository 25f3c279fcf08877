/** The numbers of HTTP/2 under their own names; packages/transport uses them too. */
import { http2 } from "@quorate/proto";

export const {
  DEFAULT_MAX_FRAME_BYTES,
  DEFAULT_WINDOW_BYTES,
  ErrorCode,
  Flag,
  FRAME_HEADER_BYTES,
  FrameType,
  LARGEST_MAX_FRAME_BYTES,
  MAX_STREAM_ID,
  MAX_WINDOW_BYTES,
  PREFACE,
  Setting,
} = http2;
