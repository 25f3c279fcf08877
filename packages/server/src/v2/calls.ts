/**
 * Calls of the v2 API into the services of v3, on behalf of an HTTP client. All that holds for a
 * call of v3 holds for them: users and roles, quota, audit, tracing, metrics, fairness.
 */
import type { Clock, HttpExchange, HttpHead } from "@quorate/host";
import { GrpcCode, type MethodDescriptor } from "@quorate/proto";
import {
  type CallContext,
  joinMessage,
  type RpcObserver,
  type ServiceTable,
  type Status,
  StatusError,
  type StreamCall,
  type StreamListener,
} from "@quorate/rpc";

type RequestOf<M extends MethodDescriptor> = Parameters<M["requestType"]["encode"]>[0];
type ResponseOf<M extends MethodDescriptor> = ReturnType<M["responseType"]["decode"]>;

/** What a stream of messages brings. */
export interface StreamSink {
  message(bytes: Uint8Array): void;
  /** The stream has ended, with a status unless it is OK. */
  ended(status: Status | undefined): void;
  /** False: send no more until `drained` of the listener is called. */
  readonly hasSpace: () => boolean;
  readonly bufferedBytes: () => number;
}

/** A stream as its client has it. */
export interface OpenStream {
  readonly listener: StreamListener;
  /** Ends it; the sink is called no more. */
  close(): void;
}

/** Where calls go, and what counts them. */
export interface CallServices {
  /** What a client of gRPC reaches too, with audit and tracing around it. */
  readonly services: ServiceTable;
  readonly observer?: RpcObserver | undefined;
  readonly clock: Clock;
}

/** The client of one HTTP request. */
export class HttpCaller {
  readonly #to: CallServices;
  readonly #head: HttpHead;
  #token: string | undefined;
  #cancelled = false;
  readonly #listeners = new Set<() => void>();

  constructor(to: CallServices, { head }: HttpExchange) {
    this.#to = to;
    this.#head = head;
    const authorization = head.headers.get("authorization");
    this.#token = authorization?.startsWith("Basic ") === true ? undefined : authorization;
  }

  /** User and password of HTTP basic authentication, latin1; undefined without them. */
  get credentials(): string | undefined {
    const authorization = this.#head.headers.get("authorization");
    return authorization?.startsWith("Basic ") === true ? authorization.slice(6) : undefined;
  }

  /** The following calls are made with a token of a login. */
  useToken(token: string): void {
    this.#token = token;
  }

  /** The client is gone. */
  cancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }

  get cancelled(): boolean {
    return this.#cancelled;
  }

  /** Calls a method. Rejects with StatusError. */
  async call<M extends MethodDescriptor>(method: M, request: RequestOf<M>): Promise<ResponseOf<M>> {
    const { path } = method;
    const bytes = method.requestType.encode(request as object);
    const { context, release } = this.#context(path);
    const handled = this.#started(path, bytes.length);
    try {
      const response = joinMessage(await this.#to.services.unary.get(path)!(bytes, context));
      this.#to.observer?.messageSent(path, response.length);
      handled(GrpcCode.OK);
      return method.responseType.decode(response) as ResponseOf<M>;
    } catch (error) {
      handled(error instanceof StatusError ? error.code : GrpcCode.Unknown);
      throw error;
    } finally {
      release();
    }
  }

  /** Notifies the observer of a call; the function that it returns, of its end. */
  #started(path: string, sizeBytes: number): (code: number) => void {
    const { observer, clock } = this.#to;
    const startedMs = clock.monotonicMs();
    observer?.started(path);
    observer?.messageReceived(path, sizeBytes);
    return (code) => observer?.handled(path, code, startedMs);
  }

  /** Opens a stream. @throws StatusError */
  open({ path }: MethodDescriptor, sink: StreamSink): OpenStream {
    const { context, release } = this.#context(path);
    const handled = this.#started(path, 0);
    let isOver = false;
    const over = (code: number) => {
      isOver = true;
      release();
      handled(code);
    };
    const call: StreamCall = {
      context,
      send: (message) => {
        if (isOver) return true;
        const bytes = joinMessage(message);
        this.#to.observer?.messageSent(path, bytes.length);
        sink.message(bytes);
        return sink.hasSpace();
      },
      get bufferedBytes() {
        return sink.bufferedBytes();
      },
      end: (status) => {
        if (isOver) return;
        over(status?.code ?? GrpcCode.OK);
        sink.ended(status);
      },
      pause: () => {},
      resume: () => {},
    };
    try {
      const listener = this.#to.services.stream.get(path)!(call);
      const close = () => {
        if (isOver) return;
        over(GrpcCode.Canceled);
        listener.cancelled?.();
      };
      return { listener, close };
    } catch (error) {
      over(error instanceof StatusError ? error.code : GrpcCode.Unknown);
      throw error;
    }
  }

  /** The caller of the ways into the member. */
  context(path: string): CallContext {
    return this.#context(path).context;
  }

  #context(path: string): { context: CallContext; release: () => void } {
    const { headers, peerAddress, peerCommonName } = this.#head;
    const isCancelled = () => this.#cancelled;
    let own: (() => void) | undefined;
    const context: CallContext = {
      path,
      metadata: (key) => {
        if (key === "authorization" || key === "token") return this.#token;
        return headers.get(key);
      },
      deadlineMs: undefined,
      peerAddress,
      peerCommonName,
      get cancelled() {
        return isCancelled();
      },
      onCancel: (listener) => {
        if (isCancelled()) return listener();
        own = listener;
        this.#listeners.add(listener);
      },
      trace: undefined,
    };
    const release = () => {
      if (own !== undefined) this.#listeners.delete(own);
    };
    return { context, release };
  }
}
