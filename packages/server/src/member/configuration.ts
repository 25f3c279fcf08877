/**
 * Changes of the cluster's configuration as they are applied: Raft's voters and learners, the membership in the store, and the links to
 * peers follow each other here.
 */
import type { Logger } from "@quorate/host";
import { type EtcdError, errorOf, idToHex, raftpb } from "@quorate/proto";
import { confChangeOf, type Raft } from "@quorate/raft";
import type { Store } from "@quorate/store";
import type { Transport } from "@quorate/transport";

export interface ConfigurationParts {
  readonly memberId: bigint;
  readonly maxLearners: number;
  readonly raft: Raft;
  readonly store: () => Store;
  readonly transport: Transport;
  readonly logger: Logger;
  /** A change that somebody proposed has been carried out or refused. */
  settled(requestId: bigint, error: EtcdError | undefined): void;
  /** This member was removed. */
  removed(): void;
}

export class Configuration {
  readonly #parts: ConfigurationParts;

  constructor(parts: ConfigurationParts) {
    this.#parts = parts;
  }

  /** Applies an entry that changes the configuration. One that does not fit the membership changes nothing, on every member alike. */
  apply(entry: raftpb.Entry): void {
    const { raft } = this.#parts;
    const store = this.#parts.store();
    if (entry.type === raftpb.EntryType.EntryConfChangeV2) {
      // Raft's own, which leaves a joint configuration: it changes no member.
      store.applyConfChange(entry, undefined, raft.applyConfChange(raftpb.ConfChangeV2.decode(entry.data)));
      return;
    }
    const change = raftpb.ConfChange.decode(entry.data);
    const refusal = store.membership.refusal(change, this.#parts.maxLearners);
    const confState = refusal === undefined ? raft.applyConfChange(confChangeOf(entry)!) : raft.confState;
    store.applyConfChange(entry, refusal === undefined ? change : undefined, confState);
    if (change.id !== 0n) this.#parts.settled(change.id, refusal === undefined ? undefined : errorOf(refusal));
    if (refusal === undefined) this.#follow(change);
  }

  #follow(change: raftpb.ConfChange): void {
    const { memberId, transport, logger } = this.#parts;
    const id = change.nodeId;
    if (change.type === raftpb.ConfChangeType.ConfChangeRemoveNode) {
      logger.info("removed member", { "removed-remote-peer-id": idToHex(id) });
      if (id === memberId) this.#parts.removed();
      else transport.removePeer(id);
      return;
    }
    const member = this.#parts.store().membership.member(id)!;
    logger.info("added member", { "added-peer-id": idToHex(id), "added-peer-peer-urls": member.peerUrls });
    this.#connect(id, member.peerUrls);
  }

  /** Brings the links to peers in line with the membership: at start, and when a received store has taken the place of the old one. */
  connectPeers(): void {
    const { store, transport } = this.#parts;
    const members = store().membership.members();
    for (const peer of transport.peers()) {
      if (!members.some((member) => member.id === peer.id)) transport.removePeer(peer.id);
    }
    for (const member of members) this.#connect(member.id, member.peerUrls);
  }

  #connect(id: bigint, urls: readonly string[]): void {
    const { memberId, transport } = this.#parts;
    if (id === memberId) return;
    if (transport.peers().some((peer) => peer.id === id)) transport.updatePeer(id, urls);
    else transport.addPeer(id, urls);
  }

  /** True if this member is the only voter, and so need not wait for anybody. */
  get isAlone(): boolean {
    const { voters } = this.#parts.raft.confState;
    return voters.length === 1 && voters[0] === this.#parts.memberId;
  }
}
