/** One watch of one client, as the watches that are shared upstream see it. */
import type { WatchCreateRequest, WatchId } from "@quorate/proto";
import type { MessageBytes } from "@quorate/rpc";

/** The client's stream, as its watches see it. */
export interface ReceiverStream {
  /**
   * Sends a response. False if the client reads too slowly: then nothing was sent, and the watch is
   * to leave its broadcast (`fellBehind`).
   */
  offer(message: MessageBytes): boolean;
  /** Sends a response that belongs to one that was just sent. */
  force(message: MessageBytes): void;
  /** The receiver has left its broadcast because its client does not read. */
  fellBehind(receiver: Receiver): void;
  /** The watch has ended: its last response is to be sent whatever waits. */
  ended(receiver: Receiver, message: MessageBytes): void;
}

/** What a client wants of a watch besides its key and the options that are shared. */
export interface ReceiverOptions {
  readonly id: WatchId;
  readonly wantsProgress: boolean;
  readonly takesFragments: boolean;
}

export class Receiver {
  readonly stream: ReceiverStream;
  readonly id: WatchId;
  readonly wantsProgress: boolean;
  readonly takesFragments: boolean;
  /** Its key as upstream, and the options by which it can share a watch. */
  readonly request: WatchCreateRequest;
  /** Older events are not for it. */
  nextRevision: number;
  /** The broadcast that it listens to; undefined while it listens to none. */
  broadcast: { readonly id: number } | undefined = undefined;

  constructor(
    stream: ReceiverStream,
    { id, wantsProgress, takesFragments }: ReceiverOptions,
    request: WatchCreateRequest,
    nextRevision: number,
  ) {
    this.stream = stream;
    this.id = id;
    this.wantsProgress = wantsProgress;
    this.takesFragments = takesFragments;
    this.request = request;
    this.nextRevision = nextRevision;
  }
}
