/**
 * A plain gRPC client for tests: any unary method of ours over grpc-js, a connection of its own for
 * each client.
 */
import * as grpc from "@grpc/grpc-js";
import type { MessageType, MethodDescriptor } from "@quorate/proto";
import type { ClientIdentity } from "../../scripts/cluster/health.ts";

/**
 * Longer than any call takes where machines are busy; a member itself ends a request after some
 * 7 s.
 */
const CALL_LIMIT_MS = 30_000;

/** A failed call: the gRPC status code and the server's words. */
export class CallError extends Error {
  readonly code: number;
  readonly details: string;

  constructor(path: string, code: number, details: string) {
    super(`${path}: ${grpc.status[code]} ${details}`);
    this.code = code;
    this.details = details;
  }
}

/** What a method takes (fields may be missing) and returns. */
export type RequestOf<M extends MethodDescriptor> = Parameters<M["requestType"]["encode"]>[0];
export type ResponseOf<M extends MethodDescriptor> = ReturnType<M["responseType"]["decode"]>;

/** A connection of its own to host:port. Without an identity it is plain. */
export function openChannel(address: string, identity: ClientIdentity = {}): grpc.Client {
  const pem = (text: string | undefined): Buffer | null =>
    text === undefined ? null : Buffer.from(text);
  const credentials =
    identity.ca === undefined
      ? grpc.credentials.createInsecure()
      : grpc.credentials.createSsl(pem(identity.ca), pem(identity.key), pem(identity.cert));
  return new grpc.Client(address, credentials, {
    "grpc.use_local_subchannel_pool": 1,
    "grpc.initial_reconnect_backoff_ms": 50,
    "grpc.max_reconnect_backoff_ms": 200,
    "grpc.max_receive_message_length": -1,
    "grpc.enable_retries": 0,
    // It would send an IP address as server name, which Node refuses.
    ...(identity.ca === undefined ? {} : { "grpc.ssl_target_name_override": "localhost" }),
  });
}

/** One connection to one member. */
export class TestClient {
  readonly #channel: grpc.Client;

  /** `address` is host:port. Without an identity the connection is plain. */
  constructor(address: string, identity: ClientIdentity = {}) {
    this.#channel = openChannel(address, identity);
  }

  /** Calls a unary method. Throws CallError; DEADLINE_EXCEEDED after `limitMs`. */
  call<M extends MethodDescriptor>(
    method: M,
    request: RequestOf<M>,
    limitMs = CALL_LIMIT_MS,
  ): Promise<ResponseOf<M>> {
    const requestType: MessageType<object> = method.requestType;
    const responseType: MessageType<ResponseOf<M>> = method.responseType;
    return new Promise((resolve, reject) => {
      this.#channel.makeUnaryRequest(
        method.path,
        (message: object) => Buffer.from(requestType.encode(message)),
        (bytes) => responseType.decode(bytes),
        request as object,
        { deadline: Date.now() + limitMs },
        (error, response) => {
          if (error === null) resolve(response!);
          else reject(new CallError(method.path, error.code, error.details));
        },
      );
    });
  }

  /**
   * Sends one request on a stream of its own and returns the first response, such as that of a
   * keep-alive. Throws CallError.
   */
  callStream<M extends MethodDescriptor>(
    method: M,
    request: RequestOf<M>,
    limitMs = CALL_LIMIT_MS,
  ): Promise<ResponseOf<M>> {
    const requestType: MessageType<object> = method.requestType;
    const responseType: MessageType<ResponseOf<M>> = method.responseType;
    return new Promise((resolve, reject) => {
      const stream = this.#channel.makeBidiStreamRequest(
        method.path,
        (message: object) => Buffer.from(requestType.encode(message)),
        (bytes) => responseType.decode(bytes),
        { deadline: Date.now() + limitMs },
      );
      stream.once("data", (response: ResponseOf<M>) => {
        resolve(response);
        stream.cancel();
      });
      stream.on("error", () => {});
      stream.once("status", ({ code, details }) =>
        reject(new CallError(method.path, code, details || "the stream ended")),
      );
      stream.write(request as object);
    });
  }

  close(): void {
    this.#channel.close();
  }
}
