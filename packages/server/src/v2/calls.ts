/**
 * Calls of the v2 API into the services of v3, on behalf of an HTTP client. All that holds for a
 * call of v3 holds for them: users and roles, quota, audit, tracing, metrics, fairness.
 */
import type { HttpExchange, HttpHead } from "@quorate/host";
import type { MethodDescriptor } from "@quorate/proto";
import {
  type CallContext,
  joinMessage,
  type ServiceTable,
  type Status,
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

/** The client of one HTTP request. */
export class HttpCaller {
  readonly #services: ServiceTable;
  readonly #head: HttpHead;
  readonly #deadlineMs: number | undefined;
  #token: string | undefined;
  #cancelled = false;
  readonly #listeners = new Set<() => void>();

  /** @param deadlineMs in the clock's monotonic milliseconds */
  constructor(services: ServiceTable, { head }: HttpExchange, deadlineMs: number | undefined) {
    this.#services = services;
    this.#head = head;
    this.#deadlineMs = deadlineMs;
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
    const handler = this.#services.unary.get(method.path)!;
    const bytes = method.requestType.encode(request as object);
    const { context, release } = this.#context(method.path, this.#deadlineMs);
    try {
      const response = await handler(bytes, context);
      return method.responseType.decode(joinMessage(response)) as ResponseOf<M>;
    } finally {
      release();
    }
  }

  /** Opens a stream. */
  open(method: MethodDescriptor, sink: StreamSink): OpenStream {
    const handler = this.#services.stream.get(method.path)!;
    const { context, release } = this.#context(method.path, undefined);
    let isOver = false;
    const listener = handler({
      context,
      send: (message) => {
        if (!isOver) sink.message(joinMessage(message));
        return sink.hasSpace();
      },
      get bufferedBytes() {
        return sink.bufferedBytes();
      },
      end: (status) => {
        if (isOver) return;
        isOver = true;
        release();
        sink.ended(status);
      },
      pause: () => {},
      resume: () => {},
    });
    const close = () => {
      if (isOver) return;
      isOver = true;
      release();
      listener.cancelled?.();
    };
    return { listener, close };
  }

  /** The caller of the ways into the member. */
  context(path: string): CallContext {
    return this.#context(path, this.#deadlineMs).context;
  }

  #context(
    path: string,
    deadlineMs: number | undefined,
  ): { context: CallContext; release: () => void } {
    const { headers, peerAddress, peerCommonName } = this.#head;
    const isCancelled = () => this.#cancelled;
    let own: (() => void) | undefined;
    const context: CallContext = {
      path,
      metadata: (key) => {
        if (key === "authorization" || key === "token") return this.#token;
        return headers.get(key);
      },
      deadlineMs,
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
