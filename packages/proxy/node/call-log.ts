/**
 * --experimental-enable-grpc-logging: a line for each message. etcd writes the messages themselves;
 * they hold passwords and values, so this writes their sizes.
 */
import type { Logger } from "@quorate/host";
import {
  messageSize,
  type ServiceTable,
  type StreamCall,
  type StreamHandler,
  type UnaryHandler,
  wrappedCall,
  wrappedListener,
} from "@quorate/rpc";

/** The same services, with a log of their messages. */
export function loggedServices(services: ServiceTable, logger: Logger): ServiceTable {
  return {
    unary: new Map([...services.unary].map(([path, handler]) => [path, unary(handler, logger)])),
    stream: new Map([...services.stream].map(([path, handler]) => [path, stream(handler, logger)])),
  };
}

const RECEIVED = "received request";
const RETURNED = "returned response";

function fieldsOf(path: string, peer: string) {
  const [, service, method] = path.split("/");
  return { "grpc.service": service, "grpc.method": method, "peer.address": peer };
}

function unary(handler: UnaryHandler, logger: Logger): UnaryHandler {
  return async (request, context) => {
    const fields = fieldsOf(context.path, context.peerAddress);
    logger.info(RECEIVED, { ...fields, "grpc.request.size": request.length });
    try {
      const response = await handler(request, context);
      logger.info(RETURNED, { ...fields, "grpc.response.size": messageSize(response) });
      return response;
    } catch (error) {
      logger.info(RETURNED, { ...fields, "grpc.response.error": (error as Error).message });
      throw error;
    }
  };
}

function stream(handler: StreamHandler, logger: Logger): StreamHandler {
  return (call) => {
    const fields = fieldsOf(call.context.path, call.context.peerAddress);
    const send: StreamCall["send"] = (message) => {
      logger.info(RETURNED, { ...fields, "grpc.response.size": messageSize(message) });
      return call.send(message);
    };
    const listener = handler(wrappedCall(call, call.context, { send }));
    return wrappedListener(listener, {
      message(bytes) {
        logger.info(RECEIVED, { ...fields, "grpc.request.size": bytes.length });
        listener.message?.(bytes);
      },
    });
  };
}
