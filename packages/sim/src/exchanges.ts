/** Calls and streams of clients, and how they prove who they are. */
import { type CallContext, LOCAL_CALL } from "@quorate/rpc";
import type { Node } from "./node.ts";

/** How a stream ends that its server ended in order. */
export const ENDED_BY_SERVER = "the server ended it";

/** What came of a call. */
export interface Reply {
  readonly bytes?: Uint8Array | undefined;
  readonly error?: string;
  /** gRPC's code of the error, where a member has answered with one. */
  readonly code?: number;
  /** The request reached no member. */
  readonly unsent?: boolean;
}

/** A client's end of a stream. */
export interface ClientStream {
  send(bytes: Uint8Array): void;
  /** Ends the stream from this side; nothing more is heard of it. */
  close(): void;
}

export interface ClientStreamListener {
  message(bytes: Uint8Array): void;
  /** The stream is over, not by `close`. Called once. */
  ended(reason: string): void;
}

export interface ClientStreamOptions {
  /** The client wants a member that knows a leader. */
  readonly needsLeader?: boolean;
  /** How long the client takes over each message. */
  readonly readMs?: number;
  /** Bytes under way beyond which the server must hold back. */
  readonly budgetBytes?: number;
}

/** How a client proves who it is. */
export interface Credential {
  /** In the metadata. */
  readonly token?: string | undefined;
  /** Of its certificate. */
  readonly commonName?: string | undefined;
}

/** What clients do on the network. */
export interface Exchanges {
  /**
   * There and back. Ends in an error if the process dies, the connection breaks, or when the time
   * is up.
   * @param client the name of who asks, for those who know clients by it
   */
  exchange(
    node: Node,
    path: string,
    bytes: Uint8Array,
    timeoutMs: number,
    client?: string,
  ): Promise<Reply>;
  /** Opens a stream. What is sent on it before it is open waits; after its end it is lost. */
  open(
    node: Node,
    path: string,
    listener: ClientStreamListener,
    options?: ClientStreamOptions,
  ): ClientStream;
}

export const NO_CREDENTIAL: Credential = {};

export type Metadata = Readonly<Record<string, string>>;

/** What a client sends beside a call. */
export function metadataOf({ token }: Credential, needsLeader: boolean): Metadata {
  return { ...(needsLeader && { hasleader: "true" }), ...(token !== undefined && { token }) };
}

/** A call as the service sees it. */
export function contextOf(path: string, credential: Credential, needsLeader: boolean): CallContext {
  const metadata = metadataOf(credential, needsLeader);
  return {
    ...LOCAL_CALL,
    path,
    peerCommonName: credential.commonName,
    metadata: (key) => metadata[key],
  };
}
