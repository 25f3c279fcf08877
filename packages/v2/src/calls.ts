/**
 * Calls of the v2 API into the services of v3, on behalf of an HTTP client. All that holds for a
 * call of v3 holds for them: users and roles, quota, audit, tracing, metrics, fairness. HTTP basic
 * authentication, as v2 had it, is a login of v3's Auth whose token is kept for a while.
 */
import type { HttpExchange } from "@quorate/host";
import { Credentials } from "@quorate/http-kv";
import type { Member } from "@quorate/member";
import type { MethodDescriptor } from "@quorate/proto";
import {
  type CallContext,
  joinMessage,
  type RpcObserver,
  type ServiceTable,
  type Status,
  type StreamListener,
} from "@quorate/rpc";
import {
  contextOf,
  ExchangeCaller,
  type RequestOf,
  type ResponseOf,
  ServiceCalls,
} from "@quorate/services";

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

/** What calls need from the outside. */
export interface CallParts {
  /** What a client of gRPC reaches too, with audit and tracing around it. */
  readonly services: ServiceTable;
  readonly observer?: RpcObserver | undefined;
  /** Random bytes, secret to this process. */
  readonly hashKey: Uint8Array;
}

/** Where calls go. */
export interface CallServices {
  readonly calls: ServiceCalls;
  readonly credentials: Credentials;
}

/** The services of a member. */
export function callServices(member: Member, parts: CallParts): CallServices {
  const { clock } = member;
  const { logins } = member.auth;
  const { services, observer, hashKey } = parts;
  const calls = new ServiceCalls(services, { clock, observer });
  const credentials = new Credentials({
    clock,
    calls,
    hashKey,
    logins,
    isEnforced: () => member.store.auth.isEnabled,
  });
  return { calls, credentials };
}

/** The client of one HTTP request. */
export class HttpCaller {
  readonly #to: CallServices;
  readonly #caller: ExchangeCaller;

  constructor(to: CallServices, { head }: HttpExchange) {
    this.#to = to;
    this.#caller = new ExchangeCaller(head);
  }

  /** Runs work for the user that a password proves, as Credentials.proved. */
  proved<T>(work: () => Promise<T>): Promise<T> {
    return this.#to.credentials.proved(this.#caller, work);
  }

  /** The client is gone. */
  cancel(): void {
    this.#caller.cancel();
  }

  get cancelled(): boolean {
    return this.#caller.isCancelled;
  }

  /** Calls a method. Rejects with StatusError. */
  call<M extends MethodDescriptor>(method: M, request: RequestOf<M>): Promise<ResponseOf<M>> {
    return this.#to.calls.unary(method, request, this.#caller);
  }

  /** Opens a stream. @throws StatusError */
  open(method: MethodDescriptor, sink: StreamSink): OpenStream {
    let isOver = false;
    const call = {
      send: (message: Parameters<typeof joinMessage>[0]) => {
        if (!isOver) sink.message(joinMessage(message));
        return sink.hasSpace();
      },
      get bufferedBytes() {
        return sink.bufferedBytes();
      },
      end: (status?: Status) => {
        if (isOver) return;
        isOver = true;
        sink.ended(status);
      },
      pause: () => {},
      resume: () => {},
    };
    const listener = this.#to.calls.stream(method, call, this.#caller, {});
    const close = () => {
      if (isOver) return;
      isOver = true;
      listener.cancelled();
    };
    return { listener, close };
  }

  /** The caller of the ways into the member. */
  context(path: string): CallContext {
    return contextOf(path, this.#caller);
  }
}
