/** Methods whose messages go through the proxy as they are, without being decoded. */
import { GrpcCode } from "@quorate/proto";
import type { StreamHandler, UnaryHandler } from "@quorate/rpc";
import { passedOn } from "./caller.ts";
import type { Upstream } from "./upstream.ts";

/** A message of one direction as the other side is to see it. */
export type Change = (message: Uint8Array) => Uint8Array;

/**
 * A unary method.
 * @param isRepeatable whether a second call does no harm
 */
export function passUnary(upstream: Upstream, path: string, isRepeatable: boolean): UnaryHandler {
  const rules = { path, isRepeatable };
  return (request, context) => upstream.unary(rules, request, context);
}

/**
 * A streaming method, with backpressure in both directions.
 * @param changeRequest applied to each request; may throw StatusError
 * @param changeResponse applied to each response
 */
export function passStream(
  upstream: Upstream,
  path: string,
  changeRequest: Change = same,
  changeResponse: Change = same,
): StreamHandler {
  return (call) => {
    const stream = upstream.stream(path, passedOn(call.context), {
      message: (bytes) => {
        if (!call.send(changeResponse(bytes))) stream.pause();
      },
      ended: (status) => {
        if (status.code === GrpcCode.OK) call.end();
        else call.end(status);
      },
      drained: () => call.resume(),
    });
    return {
      message: (bytes) => {
        let changed: Uint8Array;
        try {
          changed = changeRequest(bytes);
        } catch (error) {
          stream.cancel();
          throw error;
        }
        if (!stream.send(changed)) call.pause();
      },
      halfClosed: () => stream.finish(),
      drained: () => stream.resume(),
      cancelled: () => stream.cancel(),
    };
  };
}

function same(message: Uint8Array): Uint8Array {
  return message;
}
