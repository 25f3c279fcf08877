/** The interface of the client that its components use, so that they do not import Client. */
import type { MessageType, MethodDescriptor } from "@quorate/proto";
import type { CallOptions, WaitOptions } from "./call-options.ts";
import type { ClientTimer } from "./link.ts";
import type { Bytes } from "./requests.ts";
import type { ClientStream, StreamMethod } from "./stream.ts";
import type { Watch, WatchOptions } from "./watch.ts";

/**
 * Options for opening a stream. `timeoutMs` is the time until it is open; the signal also ends the
 * open stream, whose loop then throws ClientError with code Canceled.
 */
export interface StreamOptions extends WaitOptions {
  /**
   * The member ends the stream when it loses its leader, so that it can reopen at another member.
   */
  readonly requireLeader?: boolean;
  /** Authenticate again, because the server refused the present token. */
  readonly renewToken?: boolean;
}

/** A method of one request and one response. */
export type UnaryMethod<T> = MethodDescriptor & { readonly responseType: MessageType<T> };

/** Makes calls and opens streams, with failover. Both reject with ClientError. */
export interface Caller {
  readonly timer: ClientTimer;
  /** Timeout of a call with all its retries. */
  readonly timeoutMs: number;
  /**
   * One request, one response.
   * @param repeatable whether the call may be sent again after a failure of unknown outcome, where
   * `options.repeat` does not say so
   */
  call<T>(
    method: UnaryMethod<T>,
    request: object,
    repeatable: boolean,
    options?: CallOptions,
  ): Promise<T>;
  stream<Q, A>(
    method: StreamMethod<Q, A>,
    endpoint?: string,
    options?: StreamOptions,
  ): Promise<ClientStream<Q, A>>;
  watch(key: Bytes, options: WatchOptions): Watch;
}

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

/** The promise's result. Rejects with the signal's reason if that is aborted before. */
export async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
