/** Raw calls of a member's services: bytes in, and what became of the call. */
import * as grpc from "@grpc/grpc-js";
import { type MethodDescriptor, services } from "@quorate/proto";

/** How a call ended: the gRPC status, and how many messages came before. */
export interface Outcome {
  readonly code: number;
  readonly details: string;
  readonly messages: number;
}

const raw = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
const asIs = (bytes: Buffer): Buffer => bytes;

export type MethodShape = Pick<MethodDescriptor, "path" | "requestStream" | "responseStream">;

/**
 * Sends `bodies` (one for a unary method) and waits for the end of the call. A stream is ended by
 * the caller after `limitMs`.
 */
export function rawCall(
  client: grpc.Client,
  method: MethodShape,
  bodies: readonly Uint8Array[],
  limitMs: number,
): Promise<Outcome> {
  return new Promise((resolve) => {
    const options = { deadline: Date.now() + limitMs };
    const metadata = new grpc.Metadata();
    if (!method.requestStream && !method.responseStream) {
      client.makeUnaryRequest(method.path, raw, asIs, bodies[0], metadata, options, (error) =>
        resolve({
          code: error?.code ?? 0,
          details: error?.details ?? "",
          messages: error === null ? 1 : 0,
        }),
      );
      return;
    }
    const asked = method.requestStream
      ? client.makeBidiStreamRequest(method.path, raw, asIs, metadata, options)
      : undefined;
    const stream =
      asked ?? client.makeServerStreamRequest(method.path, raw, asIs, bodies[0], metadata, options);
    let messages = 0;
    stream.on("data", () => {
      messages++;
    });
    stream.on("error", () => {});
    stream.on("status", ({ code, details }: grpc.StatusObject) =>
      resolve({ code, details, messages }),
    );
    for (const body of bodies) asked?.write(body);
    asked?.end();
  });
}

/** A method as the fuzzer and the walk see it. */
export interface Walked extends MethodShape {
  readonly requestTypeName: string;
  /** It may wait for something to happen, for as long as the caller likes. */
  readonly waits: boolean;
}

/** Unary methods that wait until their turn has come. */
const WAITING_UNARY: ReadonlySet<string> = new Set([
  "/v3lockpb.Lock/Lock",
  "/v3electionpb.Election/Campaign",
]);

/**
 * Every method of every service that a member offers: those of proto/ from their descriptors, and
 * the standard ones.
 */
export const METHODS: readonly Walked[] = [
  ...services.flatMap((service) =>
    Object.values(service.methods).map(({ path, requestStream, responseStream, requestType }) => ({
      path,
      requestStream,
      responseStream,
      requestTypeName: requestType.typeName,
      waits: requestStream || responseStream || WAITING_UNARY.has(path),
    })),
  ),
  // Their messages have texts and lengths at the same places as these.
  standard("/grpc.health.v1.Health/Check", false, false),
  standard("/grpc.health.v1.Health/Watch", false, true),
  standard("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", true, true),
  standard("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", true, true),
];

function standard(path: string, requestStream: boolean, responseStream: boolean): Walked {
  return {
    path,
    requestStream,
    responseStream,
    requestTypeName: "membershippb.ClusterVersionSetRequest",
    waits: responseStream,
  };
}
