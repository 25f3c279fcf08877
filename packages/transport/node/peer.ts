/**
 * One other member as this one sees it: two channels to it, and at most one snapshot on its way.
 */
import { idToHex, raftpb } from "@quorate/proto";
import type { PeerStatus, SnapshotStream } from "../src/transport.ts";
import { Channel, type ChannelKind, type ChannelListener } from "./channel.ts";
import type { Shared } from "./options.ts";
import { SnapshotSender } from "./snapshot-sender.ts";

/**
 * Entries, and proposals on their way to the leader. All appends take the same way: one that
 * overtakes another is refused as a gap.
 */
function isBulk(message: raftpb.Message): boolean {
  return message.type === raftpb.MessageType.MsgApp || message.type === raftpb.MessageType.MsgProp;
}

export class Peer implements ChannelListener {
  readonly id: bigint;
  readonly #shared: Shared;
  readonly #channels: Record<ChannelKind, Channel>;
  #urls: readonly string[];
  /**
   * Where it says that it is, if it is not to be expected there: it has moved, and this member has
   * not applied that yet.
   */
  #saidUrls: readonly string[] = [];
  #snapshot: SnapshotSender | undefined;
  #activeSinceMs: number | undefined;
  #roundTripMs: number | undefined;
  #closed = false;

  constructor(shared: Shared, id: bigint, urls: readonly string[]) {
    this.id = id;
    this.#shared = shared;
    this.#urls = urls;
    this.#channels = {
      urgent: new Channel(shared, id, urls, "urgent", this),
      bulk: new Channel(shared, id, urls, "bulk", this),
    };
  }

  /**
   * Opens the channels if they are not open. Also after a sign of life: an attempt that was put off
   * is made now.
   */
  wake(): void {
    this.#channels.urgent.wake();
    this.#channels.bulk.wake();
  }

  /**
   * The peer has shown that it is there, and says where: that is tried too, since it may be how
   * this member is to learn of its move.
   */
  heardFrom(urls: readonly string[]): void {
    const said = urls.filter((url) => !this.#urls.includes(url));
    if (
      said.length === this.#saidUrls.length &&
      said.every((url, i) => url === this.#saidUrls[i])
    ) {
      this.wake();
      return;
    }
    this.#saidUrls = said;
    const all = [...this.#urls, ...said];
    this.#channels.urgent.mayDial(all);
    this.#channels.bulk.mayDial(all);
  }

  /** Sends messages for this peer: one write for each channel that they need. */
  send(messages: readonly raftpb.Message[]): void {
    const bulk = messages.filter(isBulk);
    if (bulk.length < messages.length) {
      const urgent = bulk.length === 0 ? messages : messages.filter((message) => !isBulk(message));
      this.#channels.urgent.send(urgent);
    }
    if (bulk.length > 0) this.#channels.bulk.send(bulk);
  }

  /**
   * Starts to send; false if one is on its way already. `ended` is told what became of it, also
   * after the peer is closed.
   */
  sendSnapshot(snapshot: SnapshotStream, ended: (taken: boolean) => void): boolean {
    if (this.#snapshot !== undefined) return false;
    const sender = new SnapshotSender(
      this.#shared,
      this.id,
      [...this.#urls, ...this.#saidUrls],
      snapshot,
    );
    this.#snapshot = sender;
    sender.run().then((taken) => {
      this.#snapshot = undefined;
      ended(taken);
    });
    return true;
  }

  update(urls: readonly string[]): void {
    this.#urls = urls;
    this.#saidUrls = this.#saidUrls.filter((url) => !urls.includes(url));
    const all = [...urls, ...this.#saidUrls];
    this.#channels.urgent.update(all);
    this.#channels.bulk.update(all);
  }

  get status(): PeerStatus {
    return {
      id: this.id,
      urls: this.#urls,
      activeSinceMs: this.#activeSinceMs,
      roundTripMs: this.#roundTripMs,
    };
  }

  /** Messages and bytes that wait on each channel. */
  queued(kind: ChannelKind): { readonly messages: number; readonly bytes: number } {
    return this.#channels[kind].queued;
  }

  /** Ends all that goes on with this peer; it tells nothing more. */
  close(): void {
    this.#closed = true;
    this.#channels.urgent.close();
    this.#channels.bulk.close();
    this.#snapshot?.stop();
    if (this.#activeSinceMs !== undefined) this.#shared.observer.active(this.id, false);
    this.#activeSinceMs = undefined;
  }

  opened(kind: ChannelKind): void {
    if (kind !== "urgent") return;
    this.#activeSinceMs = this.#shared.clock.monotonicMs();
    this.#shared.logger.info("peer became active", { "peer-id": idToHex(this.id) });
    this.#shared.observer.active(this.id, true);
  }

  lost(kind: ChannelKind): void {
    if (kind !== "urgent") return;
    this.#activeSinceMs = undefined;
    this.#shared.logger.warn("peer became inactive (message send to peer failed)", {
      "peer-id": idToHex(this.id),
    });
    this.#shared.observer.active(this.id, false);
  }

  roundTrip(kind: ChannelKind, ms: number): void {
    // Behind entries a ping waits; the time on the urgent channel is the link's own.
    if (kind !== "urgent") return;
    this.#roundTripMs = ms;
    this.#shared.observer.roundTrip(this.id, ms);
  }

  dropping(): void {
    // Not in the middle of a send: Raft may be the caller.
    this.#shared.clock.endOfTurn(() => {
      if (!this.#closed) this.#shared.listener.unreachable(this.id);
    });
  }
}
