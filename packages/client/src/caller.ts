/** What the parts of the client need of it, so that none of them imports the whole. */
import type { MessageType, MethodDescriptor } from "@quorate/proto";
import type { ClientTimer } from "./link.ts";
import type { ClientStream, StreamMethod } from "./stream.ts";

/** How a stream is to be opened. */
export interface StreamOptions {
  /**
   * Have the member end the stream when it loses its leader, so that it can be opened at another.
   */
  readonly requireLeader?: boolean;
  /** Show the server's credentials anew, because it refused those that it gave. */
  readonly renewToken?: boolean;
}

/** Makes calls and streams at whichever endpoint answers. Both reject with ClientError. */
export interface Caller {
  readonly timer: ClientTimer;
  /** How long a call may take with all its repetitions. */
  readonly timeoutMs: number;
  /** One request, one response. @param repeatable whether doing it twice is as good as once */
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
