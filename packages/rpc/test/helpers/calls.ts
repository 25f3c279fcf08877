/** Calls by @grpc/grpc-js with bytes in and bytes out. */
import type {
  CallOptions,
  Client,
  ClientDuplexStream,
  ClientReadableStream,
  ClientWritableStream,
  ServiceError,
} from "@grpc/grpc-js";
import { Metadata } from "@grpc/grpc-js";

const same = (bytes: Buffer): Buffer => bytes;

export interface Failure {
  readonly code: number;
  readonly details: string;
}

/** What a unary call came to. */
export async function unary(
  client: Client,
  path: string,
  request: Uint8Array,
  options: { metadata?: Record<string, string | Buffer>; call?: CallOptions } = {},
): Promise<Buffer | Failure> {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(options.metadata ?? {})) metadata.set(key, value);
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      path,
      same,
      same,
      Buffer.from(request),
      metadata,
      options.call ?? {},
      (error, value) => resolve(error ? failure(error) : (value ?? Buffer.alloc(0))),
    );
  });
}

export function failure(error: ServiceError): Failure {
  return { code: error.code, details: error.details };
}

export function duplex(
  client: Client,
  path: string,
  call: CallOptions = {},
): ClientDuplexStream<Buffer, Buffer> {
  return client.makeBidiStreamRequest(path, same, same, new Metadata(), call);
}

export function serverStream(
  client: Client,
  path: string,
  request: Uint8Array,
): ClientReadableStream<Buffer> {
  return client.makeServerStreamRequest(path, same, same, Buffer.from(request));
}

export function clientStream(
  client: Client,
  path: string,
): { call: ClientWritableStream<Buffer>; answer: Promise<Buffer | Failure> } {
  let call!: ClientWritableStream<Buffer>;
  const answer = new Promise<Buffer | Failure>((resolve) => {
    call = client.makeClientStreamRequest(path, same, same, (error, value) =>
      resolve(error ? failure(error) : (value ?? Buffer.alloc(0))),
    );
  });
  return { call, answer };
}

/** All messages of a stream until it ends, and how it ended. */
export function collect(
  stream: ClientReadableStream<Buffer> | ClientDuplexStream<Buffer, Buffer>,
): Promise<{ messages: Buffer[]; status: Failure }> {
  const messages: Buffer[] = [];
  stream.on("data", (message: Buffer) => messages.push(message));
  stream.on("error", () => {});
  return new Promise((resolve) =>
    stream.on("status", (status) =>
      resolve({ messages, status: { code: status.code, details: status.details } }),
    ),
  );
}
