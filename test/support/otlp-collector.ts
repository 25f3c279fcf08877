/**
 * A collector of OpenTelemetry's traces: takes what members export, and returns it in the form of
 * JSON.
 */
import * as grpc from "@grpc/grpc-js";
import { otlpSchema } from "./otlp-schema.ts";

interface KeyValue {
  readonly key: string;
  readonly value?: {
    readonly stringValue?: string;
    readonly boolValue?: boolean;
    readonly intValue?: string;
  };
}

/** One span with its ids in hexadecimal. */
export interface CollectedSpan {
  readonly service: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly durationNs: bigint;
  readonly attributes: Readonly<Record<string, string | boolean>>;
  readonly events: readonly string[];
  readonly status: { readonly code?: number; readonly message?: string } | undefined;
}

function flat(pairs: readonly KeyValue[] = []): Record<string, string | boolean> {
  return Object.fromEntries(
    pairs.map(({ key, value }) => [
      key,
      value?.stringValue ?? value?.boolValue ?? value?.intValue ?? "",
    ]),
  );
}

interface WireSpan
  extends Record<"traceId" | "spanId" | "name" | "startTimeUnixNano" | "endTimeUnixNano", string> {
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly attributes?: readonly KeyValue[];
  readonly events?: readonly { readonly name: string }[];
  readonly status?: CollectedSpan["status"];
}

export class OtlpCollector {
  readonly spans: CollectedSpan[] = [];
  readonly #server = new grpc.Server();
  readonly #request = otlpSchema.lookupType("Request");

  /** Starts to listen; returns the address, host:port. */
  async listen(): Promise<string> {
    const method: grpc.MethodDefinition<Buffer, Buffer> = {
      path: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
      requestStream: false,
      responseStream: false,
      requestSerialize: (value) => value,
      requestDeserialize: (value) => value,
      responseSerialize: (value) => value,
      responseDeserialize: (value) => value,
    };
    const take: grpc.handleUnaryCall<Buffer, Buffer> = (call, answer) => {
      this.#take(call.request);
      answer(null, Buffer.alloc(0));
    };
    this.#server.addService({ Export: method }, { Export: take });
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(
        "127.0.0.1:0",
        grpc.ServerCredentials.createInsecure(),
        (error, bound) => (error === null ? resolve(bound) : reject(error)),
      );
    });
    return `127.0.0.1:${port}`;
  }

  close(): void {
    this.#server.forceShutdown();
  }

  #take(bytes: Buffer): void {
    const { resourceSpans } = this.#request.toObject(this.#request.decode(bytes), {
      bytes: String,
      longs: String,
    }) as {
      resourceSpans: {
        resource: { attributes: KeyValue[] };
        scopeSpans: { spans: WireSpan[] }[];
      }[];
    };
    const hex = (base64 = "") => Buffer.from(base64, "base64").toString("hex");
    for (const { resource, scopeSpans } of resourceSpans) {
      for (const span of scopeSpans.flatMap(({ spans }) => spans)) {
        this.spans.push({
          service: String(flat(resource.attributes)["service.name"]),
          traceId: hex(span.traceId),
          spanId: hex(span.spanId),
          parentSpanId: hex(span.parentSpanId),
          name: span.name,
          kind: span.kind,
          durationNs: BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano),
          attributes: flat(span.attributes),
          events: (span.events ?? []).map(({ name }) => name),
          status: span.status,
        });
      }
    }
  }
}
