/**
 * The frame parser of the library ws, loaded with the first WebSocket: it takes some milliseconds
 * that a member without WebSockets does not need.
 */
import type { Writable } from "node:stream";

export interface ReceiverLimits {
  /** Longest message, of one or more frames. */
  readonly maxPayload: number;
  /** Most frames of one message. */
  readonly maxFragments: number;
  /** Most chunks of an incomplete frame. */
  readonly maxBufferedChunks: number;
}

/** Emits message(bytes, isBinary), ping(bytes), pong(bytes), conclude(code, reason) and error. */
export type FrameReceiver = Writable;

interface ReceiverClass {
  new (options: ReceiverLimits & { readonly isServer: true }): FrameReceiver;
}

let loading: Promise<ReceiverClass> | undefined;

/** A parser of a client's frames. */
export async function openReceiver(limits: ReceiverLimits): Promise<FrameReceiver> {
  loading ??= import("ws").then((ws) => (ws as unknown as { Receiver: ReceiverClass }).Receiver);
  const Receiver = await loading;
  return new Receiver({ ...limits, isServer: true });
}

/** Close codes (RFC 6455 section 7.4.1) for the errors of the parser; others are 1002. */
const CLOSE_CODES: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: 1007,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: 1008,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: 1009,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: 1009,
};

export function closeCodeOf(error: Error & { code?: string }): number {
  return CLOSE_CODES[error.code ?? ""] ?? 1002;
}
