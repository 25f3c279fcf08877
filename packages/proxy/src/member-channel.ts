/** The connection to one member, as the proxy uses it. */
import type { ClientConnection } from "@quorate/rpc";

export interface MemberChannel {
  /** The endpoint as the user wrote it. */
  readonly endpoint: string;
  /** The connection, if it takes calls now. */
  readonly ready: ClientConnection | undefined;
  /** Dials if needed. Rejects with StatusError. */
  connect(): Promise<ClientConnection>;
  close(): void;
}

/** The members of a cluster, as a stream sees them. */
export interface MemberChannels {
  /** The member in use. */
  readonly channel: MemberChannel;
  /** Number of members. */
  readonly size: number;
  /** Moves to the next member, if `channel` is the one in use. */
  leave(channel: MemberChannel): void;
}
