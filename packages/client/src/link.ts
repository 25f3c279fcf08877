/**
 * One connection to one endpoint, as the failover sees it. The gRPC twin is in node/grpc-link.ts,
 * tests bring their own.
 */

/** Why a call over a link failed. */
export class LinkError extends Error {
  readonly grpcCode: number;
  /**
   * False if it is certain that the request never left: repeating it elsewhere then cannot do it
   * twice.
   */
  readonly sent: boolean;
  constructor(grpcCode: number, message: string, sent: boolean) {
    super(message);
    this.name = "LinkError";
    this.grpcCode = grpcCode;
    this.sent = sent;
  }
}

/** What goes with a call besides its request. */
export interface CallMetadata {
  /** The auth token, or undefined. */
  readonly token: string | undefined;
  /** Have the member end the stream when it loses its leader. */
  readonly requireLeader?: boolean;
}

/** A stream of messages as a link carries it. */
export interface LinkStream {
  send(message: Uint8Array): void;
  /** No message will follow. */
  finish(): void;
  /** Ends it from this side; `answers` ends without an error then. */
  cancel(): void;
  /** The server's messages; to be called once. Rejects with LinkError. */
  answers(): AsyncIterable<Uint8Array>;
}

export interface Link {
  /** The endpoint as the user wrote it. */
  readonly endpoint: string;
  /**
   * Sends one request and gives the response's bytes. Connects first if need be, for at most
   * `dialTimeoutMs`. Rejects with LinkError; after `timeoutMs` in all with code 4
   * (DEADLINE_EXCEEDED).
   */
  call(
    path: string,
    request: Uint8Array,
    metadata: CallMetadata,
    dialTimeoutMs: number,
    timeoutMs: number,
  ): Promise<Uint8Array>;
  /**
   * Opens a stream, without a limit of time. Connects first if need be, for at most
   * `dialTimeoutMs`. Rejects with LinkError.
   */
  stream(path: string, metadata: CallMetadata, dialTimeoutMs: number): Promise<LinkStream>;
  close(): void;
}

/** Time as watches and leases need it. */
export interface ClientTimer {
  /** Calls `task` after `delayMs`, unless the function that it gives is called before. */
  after(delayMs: number, task: () => void): () => void;
}

/** Time as the failover needs it. */
export interface ClientClock {
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Resolves after `delayMs`. */
  sleep(delayMs: number): Promise<void>;
}
