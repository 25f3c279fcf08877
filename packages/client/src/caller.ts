/** The interface of the client that its components use, so that they do not import Client. */
import type { Kind } from "@quorate/host";
import type { MessageType, MethodDescriptor } from "@quorate/proto";
import type { ClientTimer } from "./link.ts";
import type { ClientStream, StreamMethod } from "./stream.ts";

/** Options for opening a stream. */
export interface StreamOptions {
  /**
   * The member ends the stream when it loses its leader, so that it can reopen at another member.
   */
  readonly requireLeader?: boolean;
  /** Authenticate again, because the server refused the present token. */
  readonly renewToken?: boolean;
}

/** Makes calls and opens streams, with failover. Both reject with ClientError. */
export interface Caller {
  readonly timer: ClientTimer;
  /** Timeout of a call with all its retries. */
  readonly timeoutMs: number;
  /**
   * One request, one response.
   * @param repeatable whether the call is idempotent
   */
  call<T>(
    method: MethodDescriptor & { readonly responseType: MessageType<T> },
    request: object,
    repeatable: boolean,
  ): Promise<T>;
  stream<Q, A>(
    method: StreamMethod<Q, A>,
    endpoint?: string,
    options?: StreamOptions,
  ): Promise<ClientStream<Q, A>>;
}

/** A parameter that ends a wait. */
export const SIGNAL: Kind = {
  name: "an AbortSignal",
  is: (value) => value instanceof AbortSignal,
};

/** Resolves after `delayMs`, or at once when `signal` is aborted. */
export function pause(timer: ClientTimer, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = (): void => {
      forget();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const forget = timer.after(delayMs, end);
    signal.addEventListener("abort", end);
  });
}
