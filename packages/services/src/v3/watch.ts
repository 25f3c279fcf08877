/** etcdserverpb.Watch: the requests of a stream, handed to its watches. */

import type { Member, WatchStream } from "@quorate/member";
import { callerOf } from "@quorate/member";
import { WatchRequest, WatchService } from "@quorate/proto";
import type { StreamCall, StreamHandler, StreamListener } from "@quorate/rpc";
import { toStatusError } from "../calls/results.ts";

/** The handlers of the watch service, by path. */
export function watchService(member: Member): ReadonlyMap<string, StreamHandler> {
  return new Map<string, StreamHandler>([
    [
      WatchService.methods.Watch.path,
      (call) => new WatchRequests(call, member.watch(callerOf(call.context), call)),
    ],
  ]);
}

/** The requests of one stream, in their order. */
class WatchRequests implements StreamListener {
  readonly #call: StreamCall;
  readonly #stream: WatchStream;
  /** Requests that came while it is found out who the client is. */
  #held: Uint8Array[] | undefined;
  #isOver = false;

  constructor(call: StreamCall, stream: WatchStream) {
    this.#call = call;
    this.#stream = stream;
  }

  message(bytes: Uint8Array): void {
    if (this.#held !== undefined) {
      this.#held.push(bytes);
      return;
    }
    try {
      this.#take(bytes);
    } catch (error) {
      this.#stream.close();
      throw error;
    }
  }

  #take(bytes: Uint8Array, hasWaited = false): void {
    const stream = this.#stream;
    const union = WatchRequest.decode(bytes).requestUnion;
    // A request of a kind that is not known is passed over, as in etcd.
    if (union?.case === "createRequest") {
      const ready = hasWaited ? undefined : stream.ready();
      if (ready === undefined) stream.create(union.value);
      else this.#hold(ready, bytes);
    } else if (union?.case === "cancelRequest") stream.cancel(union.value.watchId);
    else if (union?.case === "progressRequest") stream.requestProgress();
  }

  /** The engine sends nothing more while the stream is paused, but for what it has read already. */
  #hold(ready: Promise<void>, first: Uint8Array): void {
    const held: Uint8Array[] = [];
    this.#held = held;
    this.#call.pause();
    ready
      // The watch is refused then, for the reason that it could not be found out.
      .catch(() => {})
      .then(() => {
        if (this.#isOver) return;
        this.#held = undefined;
        this.#call.resume();
        this.#take(first, true);
        for (const bytes of held) this.message(bytes);
      })
      .catch((error: unknown) => {
        this.#stream.close();
        this.#call.end(toStatusError(error));
      });
  }

  drained(): void {
    // A client that has nothing more to ask still gets its events.
    this.#stream.drained();
  }

  cancelled(): void {
    this.#isOver = true;
    this.#stream.close();
  }
}
