/** The connection to one member, as the proxy uses it. */
import { GrpcCode } from "@quorate/proto";
import type { ClientConnection, Status, StatusError } from "@quorate/rpc";

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

/** For a call that a connection does not take. */
export const TOO_MANY_OPEN_CALLS: Status = {
  code: GrpcCode.ResourceExhausted,
  message: "the member has as many open calls as it takes",
};

/** Calls `begin` with the channel's connection: at once if it is there, or when it is dialled. */
export function onceConnected(
  channel: MemberChannel,
  begin: (connection: ClientConnection) => void,
  failed: (error: StatusError) => void,
): void {
  const { ready } = channel;
  if (ready !== undefined) begin(ready);
  else channel.connect().then(begin, failed);
}
