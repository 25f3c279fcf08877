/** A stream of a client's, in memory. */
import {
  type CallContext,
  joinMessage,
  LOCAL_CALL,
  type MessageBytes,
  type Status,
  type StreamCall,
} from "@quorate/rpc";

export class ClientCall implements StreamCall {
  readonly context: CallContext;
  readonly messages: Uint8Array[] = [];
  /** With undefined for an end that is OK. */
  readonly ends: (Status | undefined)[] = [];
  isPaused = false;
  /** Bytes that wait for the client to take them. */
  bufferedBytes = 0;
  /** So many messages are taken before the call says that it is full. */
  capacity: number = Number.POSITIVE_INFINITY;

  constructor(path: string, context: Partial<CallContext> = {}) {
    this.context = { ...LOCAL_CALL, path, ...context };
  }

  send(message: MessageBytes): boolean {
    this.messages.push(joinMessage(message));
    return --this.capacity > 0;
  }

  end(status?: Status): void {
    this.ends.push(status);
  }

  /** How it ended; undefined while it lasts. */
  get ended(): Status | "ok" | undefined {
    return this.ends.length === 0 ? undefined : (this.ends[0] ?? "ok");
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }
}

/** Metadata with a token, if there is one. */
export function withToken(token: string | undefined): Pick<CallContext, "metadata"> {
  return { metadata: (key) => (key === "token" ? token : undefined) };
}
