/** Streams with something between service and client that looks at what passes. */
import type { CallContext, StreamCall, StreamListener } from "./service.ts";

/**
 * A call with other methods in the place of some of its own. Where its messages are looked at, none
 * goes out shared with other streams.
 */
export function wrappedCall(
  call: Omit<StreamCall, "context">,
  context: CallContext,
  own: Partial<Pick<StreamCall, "send" | "end">>,
): StreamCall {
  return {
    context,
    send: (message) => call.send(message),
    sendCommon: own.send === undefined ? call.sendCommon?.bind(call) : undefined,
    get bufferedBytes() {
      return call.bufferedBytes;
    },
    end: (status) => call.end(status),
    pause: () => call.pause(),
    resume: () => call.resume(),
    ...own,
  };
}

/** A listener with other methods in the place of some of its own. */
export function wrappedListener(
  listener: StreamListener,
  own: StreamListener,
): Required<StreamListener> {
  return {
    message: (bytes) => listener.message?.(bytes),
    halfClosed: () => listener.halfClosed?.(),
    drained: () => listener.drained?.(),
    cancelled: () => listener.cancelled?.(),
    ...own,
  };
}
