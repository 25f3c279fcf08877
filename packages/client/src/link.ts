/**
 * The connection to one endpoint, as an interface. node/engine-link.ts implements it over HTTP/2;
 * tests have fakes.
 */

/** Why a call over a link failed. */
export class LinkError extends Error {
  readonly grpcCode: number;
  /**
   * False if the request was certainly never sent, so that a retry cannot apply it twice.
   */
  readonly sent: boolean;
  /** A certificate was refused, the server's or this client's: so it will be the next time. */
  readonly isUntrusted: boolean;
  constructor(grpcCode: number, message: string, sent: boolean, isUntrusted = false) {
    super(message);
    this.isUntrusted = isUntrusted;
    this.name = "LinkError";
    this.grpcCode = grpcCode;
    this.sent = sent;
  }
}

/** Metadata of a call. */
export interface CallMetadata {
  /** The authentication token, or undefined. */
  readonly token: string | undefined;
  /** The member ends the stream when it loses its leader. */
  readonly requireLeader?: boolean;
}

/** A stream of encoded messages. */
export interface LinkStream {
  send(message: Uint8Array): void;
  /** Half-closes the stream: no message follows. */
  finish(): void;
  /** Cancels the stream; `responses` then ends without an error. */
  cancel(): void;
  /** The server's messages. Call once. Rejects with LinkError. */
  responses(): AsyncIterable<Uint8Array>;
}

export interface Link {
  /** The endpoint as the user wrote it. */
  readonly endpoint: string;
  /**
   * Sends one request and returns the response's bytes. Connects first if needed, for at most
   * `dialTimeoutMs`. Rejects with LinkError; after `timeoutMs` in total with code 4
   * (DEADLINE_EXCEEDED), and when `signal` is aborted with code 1 (CANCELLED).
   */
  call(
    path: string,
    request: Uint8Array,
    metadata: CallMetadata,
    dialTimeoutMs: number,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<Uint8Array>;
  /**
   * Opens a stream, which has no timeout. Connects first if needed, for at most `dialTimeoutMs`.
   * Rejects with LinkError.
   */
  stream(path: string, metadata: CallMetadata, dialTimeoutMs: number): Promise<LinkStream>;
  close(): void;
}

/** Timers for watches and leases. */
export interface ClientTimer {
  /** Calls `task` after `delayMs`. Returns a function that cancels it. */
  after(delayMs: number, task: () => void): () => void;
}

/** The clock of the failover. */
export interface ClientClock {
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Resolves after `delayMs`, or when `signal` is aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}
