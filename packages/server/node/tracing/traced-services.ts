/**
 * Every method with a span of its calls around it, and within it one for what etcd has one for. A
 * call whose trace is not sampled goes straight through. Which span a proposal belongs to is in the
 * call's context.
 */
import {
  GrpcCode,
  LeaseKeepAliveRequest,
  LeaseService,
  WatchRequest,
  WatchService,
} from "@quorate/proto";
import {
  type CallContext,
  promised,
  type ServiceTable,
  type Status,
  type StreamHandler,
  type StreamListener,
  type UnaryHandler,
  wrappedCall,
  wrappedListener,
} from "@quorate/rpc";
import { statusOf } from "../../src/audit/verdict.ts";
import { type InnerSpan, innerSpans, watchAttributes } from "../../src/tracing/calls.ts";
import type { Attributes, Span, Tracer } from "../../src/tracing/span.ts";
import { TracedContext } from "../../src/tracing/traced-context.ts";

const STATUS_NAMES: readonly string[] = Object.keys(GrpcCode).map((name) =>
  name === "Canceled" ? "CANCELLED" : name.replace(/(?<=[a-z])[A-Z]/g, "_$&").toUpperCase(),
);
/**
 * Codes that are the server's doing; with others the caller's request was at fault, and the span is
 * no failure.
 */
const FAILURES: ReadonlySet<number> = new Set([
  GrpcCode.Unknown,
  GrpcCode.DeadlineExceeded,
  GrpcCode.Unimplemented,
  GrpcCode.Internal,
  GrpcCode.Unavailable,
  GrpcCode.DataLoss,
]);

export class TracedServices {
  readonly #tracer: Tracer;
  readonly #monotonicMs: () => number;

  constructor(tracer: Tracer, monotonicMs: () => number) {
    this.#tracer = tracer;
    this.#monotonicMs = monotonicMs;
  }

  /** The table with spans. */
  around({ unary, stream }: ServiceTable): ServiceTable {
    return {
      unary: new Map([...unary].map(([path, handler]) => [path, this.#unary(path, handler)])),
      stream: new Map([...stream].map(([path, handler]) => [path, this.#stream(path, handler)])),
    };
  }

  /** Begins the spans of a method's calls. */
  #beginning(path: string): (context: CallContext) => Span | undefined {
    const name = path.slice(1);
    const attributes: Attributes = [
      ["rpc.method", name],
      ["rpc.system.name", "grpc"],
    ];
    return (context) => this.#tracer.serve(name, context.metadata("traceparent"), attributes);
  }

  #end(span: Span, status: Status): void {
    span.attributes.push([
      "rpc.response.status_code",
      STATUS_NAMES[status.code] ?? String(status.code),
    ]);
    if (FAILURES.has(status.code)) span.error = status.message;
    this.#tracer.end(span);
  }

  #unary(path: string, handler: UnaryHandler): UnaryHandler {
    const tracer = this.#tracer;
    const inner = innerSpans.get(path);
    const begin = this.#beginning(path);
    return (request, context) => {
      const span = begin(context);
      if (span === undefined) return handler(request, context);
      let within: Span | undefined;
      const finish = (status: Status) => {
        if (within !== undefined) tracer.end(within);
        // A caller that has gone has got that, whatever came later.
        this.#end(span, context.cancelled ? this.#cancellation(context) : status);
      };
      const failed = (error: unknown): never => {
        finish(statusOf(error));
        throw error;
      };
      try {
        within = inner && tracer.within(span, inner.name, attributesOf(inner, request));
        const traced = new TracedContext(context, tracer, within ?? span);
        const answer = promised(handler(request, traced));
        if (answer instanceof Promise) {
          return answer.then((message) => {
            finish(OK);
            return message;
          }, failed);
        }
        finish(OK);
        return answer;
      } catch (error) {
        return failed(error);
      }
    };
  }

  #cancellation({ deadlineMs }: CallContext): Status {
    const isLate = deadlineMs !== undefined && this.#monotonicMs() >= deadlineMs;
    return isLate
      ? { code: GrpcCode.DeadlineExceeded, message: "context deadline exceeded" }
      : { code: GrpcCode.Canceled, message: "context canceled" };
  }

  #stream(path: string, handler: StreamHandler): StreamHandler {
    const begin = this.#beginning(path);
    const inner = innerSpans.get(path);
    return (call) => {
      const span = begin(call.context);
      if (span === undefined) return handler(call);
      let isOver = false;
      /** Of the one request of a method that etcd has a span of; it lasts as long as the call. */
      let whole: Span | undefined;
      const over = (status: Status) => {
        if (isOver) return;
        isOver = true;
        if (whole !== undefined) this.#tracer.end(whole);
        this.#end(span, status);
      };
      let listener: StreamListener;
      try {
        const context = new TracedContext(call.context, this.#tracer, span);
        const end = (status?: Status) => {
          over(status ?? OK);
          call.end(status);
        };
        listener = handler(wrappedCall(call, context, { end }));
      } catch (error) {
        over(statusOf(error));
        throw error;
      }
      return wrappedListener(listener, {
        message: (bytes) => {
          if (inner !== undefined)
            whole ??= this.#tracer.within(span, inner.name, attributesOf(inner, bytes));
          const within = this.#message(path, span, bytes);
          try {
            listener.message?.(bytes);
          } finally {
            if (within !== undefined) this.#tracer.end(within);
          }
        },
        cancelled: () => {
          over(this.#cancellation(call.context));
          listener.cancelled?.();
        },
      });
    };
  }

  /** The span of one message of a stream, for those that etcd has one of. */
  #message(path: string, span: Span, bytes: Uint8Array): Span | undefined {
    try {
      if (path === WatchService.methods.Watch.path) {
        const { requestUnion } = WatchRequest.decode(bytes);
        return requestUnion?.case === "createRequest"
          ? this.#tracer.within(span, "watch", watchAttributes(requestUnion.value))
          : undefined;
      }
      if (path === LeaseService.methods.LeaseKeepAlive.path) {
        return this.#tracer.within(span, "lease_renew", [
          ["id", LeaseKeepAliveRequest.decode(bytes).ID],
        ]);
      }
    } catch {
      // The handler says what is wrong with it.
    }
    return undefined;
  }
}

/** None where the request's bytes are none: its handler says what is wrong with them. */
function attributesOf(inner: InnerSpan, request: Uint8Array): Attributes {
  try {
    return inner.attributes(request);
  } catch {
    return [];
  }
}

const OK: Status = { code: GrpcCode.OK, message: "" };
