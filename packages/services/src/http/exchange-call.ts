/**
 * An HTTP request as calls of the member's services, so that identity, permission, quota, audit,
 * tracing and metrics are those of gRPC.
 *
 *     exchange -> ExchangeCaller -> ServiceCalls.unary(method, request) -> response
 */
import type { Clock, HttpHead } from "@quorate/host";
import { defined, GrpcCode, type MethodDescriptor } from "@quorate/proto";
import {
  type CallContext,
  FORWARDED_FOR,
  joinMessage,
  messageSize,
  type RpcObserver,
  type ServiceTable,
  type StreamCall,
  type StreamListener,
  wrappedCall,
  wrappedListener,
} from "@quorate/rpc";
import { toStatusError } from "../calls/results.ts";

/** Header fields that calls see as metadata. */
const PASSED_FIELDS: ReadonlySet<string> = new Set([
  "authorization",
  "traceparent",
  "tracestate",
  FORWARDED_FOR,
]);

/** The client of one exchange: the part of a call's context that its calls share. */
export class ExchangeCaller {
  readonly peerAddress: string;
  readonly peerCommonName: string | undefined;
  readonly peerSubject: string | undefined;
  /** In place of the request's header Authorization, once a password has been checked. */
  authorization: string | undefined;
  readonly #headers: ReadonlyMap<string, string>;
  readonly #cancelled = new Set<() => void>();
  isCancelled = false;

  constructor({ headers, peerAddress, peerCommonName, peerSubject }: HttpHead) {
    this.#headers = headers;
    this.peerAddress = peerAddress;
    this.peerCommonName = peerCommonName;
    this.peerSubject = peerSubject;
    this.authorization = headers.get("authorization");
  }

  metadata(key: string): string | undefined {
    if (key === "authorization") return this.authorization;
    return PASSED_FIELDS.has(key) ? this.#headers.get(key) : undefined;
  }

  /** The same client for a call that needs no identity, such as a login. It is not cancelled. */
  withoutEvidence(): ExchangeCaller {
    const { peerAddress, peerCommonName, peerSubject: subject } = this;
    const peerSubject = subject === undefined ? {} : { peerSubject: subject };
    const forwarded = this.#headers.get(FORWARDED_FOR);
    const headers = new Map(forwarded === undefined ? [] : [[FORWARDED_FOR, forwarded]]);
    const head = { method: "", path: "", query: "", headers };
    return new ExchangeCaller({ ...head, peerAddress, peerCommonName, ...peerSubject });
  }

  /** The client is gone: calls that are under way end. */
  cancel(): void {
    this.isCancelled = true;
    const listeners = [...this.#cancelled];
    this.#cancelled.clear();
    for (const listener of listeners) listener();
  }

  /** @returns a function that forgets the listener */
  onCancel(listener: () => void): () => void {
    if (this.isCancelled) listener();
    else this.#cancelled.add(listener);
    return () => this.#cancelled.delete(listener);
  }
}

/** The context of one call for an exchange. */
class ExchangeContext implements CallContext {
  readonly path: string;
  readonly deadlineMs: undefined;
  readonly trace: undefined;
  readonly #caller: ExchangeCaller;
  readonly #fields: Readonly<Record<string, string>>;
  #forget: (() => void) | undefined;

  constructor(path: string, caller: ExchangeCaller, fields: Readonly<Record<string, string>>) {
    this.path = path;
    this.#caller = caller;
    this.#fields = fields;
  }

  metadata(key: string): string | undefined {
    return this.#fields[key] ?? this.#caller.metadata(key);
  }

  get peerAddress(): string {
    return this.#caller.peerAddress;
  }

  get peerCommonName(): string | undefined {
    return this.#caller.peerCommonName;
  }

  get peerSubject(): string | undefined {
    return this.#caller.peerSubject;
  }

  get cancelled(): boolean {
    return this.#caller.isCancelled;
  }

  onCancel(listener: () => void): void {
    this.#forget?.();
    this.#forget = this.#caller.onCancel(listener);
  }

  /** The call has ended: its listener is called no more. */
  ended(): void {
    this.#forget?.();
  }
}

/** The context of a call that only asks who the client is. */
export function contextOf(path: string, caller: ExchangeCaller): CallContext {
  return new ExchangeContext(path, caller, NO_FIELDS);
}

const NO_FIELDS: Readonly<Record<string, string>> = {};

/** Calls methods of a table, counted as an engine counts them. */
export class ServiceCalls {
  readonly #services: ServiceTable;
  readonly #clock: Clock;
  readonly #observer: RpcObserver | undefined;

  constructor(
    services: ServiceTable,
    { clock, observer }: { readonly clock: Clock; readonly observer: RpcObserver | undefined },
  ) {
    this.#services = services;
    this.#clock = clock;
    this.#observer = observer;
  }

  /**
   * Calls a unary method.
   * @returns a promise of the response. Rejects as the method does
   */
  async unary<M extends MethodDescriptor>(
    { path, requestType, responseType }: M,
    request: RequestOf<M>,
    caller: ExchangeCaller,
  ): Promise<ResponseOf<M>> {
    const bytes = requestType.encode(request as object);
    const observer = this.#observer;
    const startedMs = this.#clock.monotonicMs();
    const context = new ExchangeContext(path, caller, NO_FIELDS);
    observer?.started(path);
    observer?.messageReceived(path, bytes.length);
    try {
      const response = await defined(this.#services.unary.get(path), path)(bytes, context);
      observer?.messageSent(path, messageSize(response));
      observer?.handled(path, GrpcCode.OK, startedMs);
      return responseType.decode(joinMessage(response)) as ResponseOf<M>;
    } catch (error) {
      observer?.handled(path, toStatusError(error).code, startedMs);
      throw error;
    } finally {
      context.ended();
    }
  }

  /**
   * Starts a stream whose messages `call` receives.
   * @param fields of the call's metadata, beside those of the request
   * @returns the method's listener. Throws as the method does
   */
  stream(
    { path }: MethodDescriptor,
    call: Omit<StreamCall, "context">,
    caller: ExchangeCaller,
    fields: Readonly<Record<string, string>>,
  ): Required<StreamListener> {
    const observer = this.#observer;
    const startedMs = this.#clock.monotonicMs();
    observer?.started(path);
    let isOver = false;
    const over = (code: number): void => {
      if (isOver) return;
      isOver = true;
      observer?.handled(path, code, startedMs);
    };
    const context = new ExchangeContext(path, caller, fields);
    const streamCall = wrappedCall(call, context, {
      send: (message) => {
        observer?.messageSent(path, messageSize(message));
        return call.send(message);
      },
      end: (status) => {
        over(status?.code ?? GrpcCode.OK);
        call.end(status);
      },
    });
    let listener: StreamListener;
    try {
      listener = defined(this.#services.stream.get(path), path)(streamCall);
    } catch (error) {
      over(toStatusError(error).code);
      throw error;
    }
    return wrappedListener(listener, {
      message: (bytes) => {
        observer?.messageReceived(path, bytes.length);
        try {
          listener.message?.(bytes);
        } catch (error) {
          over(toStatusError(error).code);
          throw error;
        }
      },
      cancelled: () => {
        over(GrpcCode.Canceled);
        listener.cancelled?.();
      },
    });
  }
}

/** What a method takes, as an object. */
export type RequestOf<M extends MethodDescriptor> = Parameters<M["requestType"]["encode"]>[0];
/** What a method returns, as an object. */
export type ResponseOf<M extends MethodDescriptor> = ReturnType<M["responseType"]["decode"]>;
