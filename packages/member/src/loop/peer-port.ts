/** This member's side of its transport: what its peers send, and what the links to them ask. */
import type { Logger } from "@quorate/host";
import type { raftpb } from "@quorate/proto";
import type { Raft } from "@quorate/raft";
import type { AskMembers, PeerCall, SnapshotStream, TransportListener } from "@quorate/transport";
import type { SentSnapshots } from "../apply/sent-snapshots.ts";
import type { SnapshotReceiver } from "../apply/snapshot-receiver.ts";
import type { MemberConfig } from "../config/member-config.ts";
import { askMembers, type Departure, type LinkQuestions } from "../membership/index.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { LoopTurns } from "./loop-turns.ts";
import type { PeerMessages } from "./peer-messages.ts";

export interface PeerPortParts {
  readonly clusterId: bigint;
  readonly config: MemberConfig;
  readonly raft: Raft;
  readonly turns: LoopTurns;
  readonly store: StoreRef;
  readonly messages: PeerMessages;
  readonly receiver: SnapshotReceiver;
  readonly sent: SentSnapshots;
  readonly departure: Departure;
  readonly call: PeerCall;
  readonly logger: Logger;
}

export class PeerPort implements TransportListener, LinkQuestions {
  readonly #parts: PeerPortParts;

  constructor(parts: PeerPortParts) {
    this.#parts = parts;
  }

  // Properties, not methods: a transport takes them one by one.

  readonly received = (messages: readonly raftpb.Message[]): void =>
    this.#parts.messages.received(messages);

  readonly snapshotReceived = (stream: SnapshotStream): Promise<void> =>
    this.#parts.receiver.receive(stream);

  readonly unreachable = (id: bigint): void => {
    this.#parts.raft.reportUnreachable(id);
    this.#parts.turns.wake();
  };

  readonly snapshotSent = (id: bigint, taken: boolean): void => this.#parts.sent.ended(id, taken);

  readonly isRemoved = (id: bigint): boolean => this.#parts.store.current.membership.isRemoved(id);

  readonly selfRemoved = (): void => this.#parts.departure.known();

  readonly askMembers: AskMembers = (peerUrls, reported) =>
    askMembers(this.#parts, peerUrls, reported);
}
