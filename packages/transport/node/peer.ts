/**
 * One other member as this one sees it: two channels to it, and at most one snapshot on its way. A
 * member that answers in etcd's peer protocol has an EtcdPeer in their place, until it is one of
 * Quorate.
 */
import type { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { idToHex, raftpb } from "@quorate/proto";
import type { EtcdStream } from "../src/etcd-frames.ts";
import { type ChannelKind, channelKindOf } from "../src/frames.ts";
import type { OutgoingSnapshot, PeerStatus } from "../src/transport.ts";
import { Channel, type ChannelListener } from "./channel.ts";
import { DialError } from "./dial.ts";
import { EtcdPeer, type EtcdPeerListener } from "./etcd-peer.ts";
import type { Shared } from "./options.ts";
import { SnapshotFetch } from "./snapshot-fetch.ts";
import type { SnapshotReceiver } from "./snapshot-receiver.ts";
import { SnapshotSender } from "./snapshot-sender.ts";
import type { Carrier } from "./stream.ts";

function isBulk(message: raftpb.Message): boolean {
  return channelKindOf(message) === "bulk";
}

export class Peer implements ChannelListener, EtcdPeerListener {
  readonly id: bigint;
  readonly #shared: Shared;
  /** Closed while `#etcd` is there. */
  #channels: Record<ChannelKind, Channel>;
  #etcd: EtcdPeer | undefined;
  #urls: readonly string[];
  /**
   * Where it says that it is, if it is not to be expected there: it has moved, and this member has
   * not applied that yet.
   */
  #saidUrls: readonly string[] = [];
  #snapshot: SnapshotSender | undefined;
  readonly #receiver: SnapshotReceiver;
  /** Called with the request of the peer for the snapshot that it was offered. */
  #fetched: ((stream: ServerHttp2Stream) => void) | undefined;
  #fetching: SnapshotFetch | undefined;
  #activeSinceMs: number | undefined;
  #roundTripMs: number | undefined;
  #closed = false;

  constructor(shared: Shared, receiver: SnapshotReceiver, id: bigint, urls: readonly string[]) {
    this.id = id;
    this.#shared = shared;
    this.#receiver = receiver;
    this.#urls = urls;
    this.#channels = this.#newChannels();
    if (!shared.options.isEtcd) return;
    this.#closeChannels();
    this.#etcd = new EtcdPeer(shared, id, urls, this);
  }

  #newChannels(): Record<ChannelKind, Channel> {
    const make = (kind: ChannelKind) =>
      new Channel(this.#shared, this.id, this.#dialled, kind, this);
    return { urgent: make("urgent"), bulk: make("bulk") };
  }

  #closeChannels(): void {
    this.#channels.urgent.close();
    this.#channels.bulk.close();
  }

  /** Where it is dialled. */
  get #dialled(): readonly string[] {
    return [...this.#urls, ...this.#saidUrls];
  }

  /** The peer reads a stream of etcd's protocol, whose head is sent. */
  attach(stream: EtcdStream, response: ServerResponse): void {
    this.speaksEtcd();
    this.#etcd?.attach(stream, response);
  }

  speaksEtcd(): boolean {
    if (this.#closed || this.#etcd !== undefined) return true;
    if (!this.#shared.takesEtcd()) return false;
    this.#changed("etcd");
    this.#closeChannels();
    this.#etcd = new EtcdPeer(this.#shared, this.id, this.#dialled, this);
    this.#etcd.wake();
    return true;
  }

  speaksQuorate(): void {
    if (this.#closed || this.#etcd === undefined) return;
    this.#changed("quorate");
    this.#etcd.close();
    this.#etcd = undefined;
    this.#channels = this.#newChannels();
    this.wake();
  }

  /** What is on its way in the other protocol is lost. */
  #changed(protocol: "etcd" | "quorate"): void {
    this.#shared.logger.info("the remote peer speaks another protocol", {
      "remote-peer-id": idToHex(this.id),
      protocol,
    });
    if (this.#activeSinceMs !== undefined) this.lost("urgent");
    this.dropping();
  }

  /**
   * The peer has dialled a stream and reads messages on it: they go there while the peer cannot be
   * dialled.
   */
  lend(kind: ChannelKind, carrier: Carrier): void {
    this.speaksQuorate();
    this.#channels[kind].lend(carrier);
  }

  /**
   * Opens the channels if they are not open. Also after a sign of life: an attempt that was put off
   * is made now.
   */
  wake(): void {
    this.#etcd?.wake();
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
    const all = this.#dialled;
    this.#etcd?.update(all);
    this.#channels.urgent.mayDial(all);
    this.#channels.bulk.mayDial(all);
  }

  /** Sends messages for this peer: one write for each channel that they need. */
  send(messages: readonly raftpb.Message[]): void {
    if (this.#etcd !== undefined) {
      this.#etcd.send(messages);
      return;
    }
    const bulk = messages.filter(isBulk);
    if (bulk.length < messages.length) {
      const urgent = bulk.length === 0 ? messages : messages.filter((message) => !isBulk(message));
      this.#channels.urgent.send(urgent);
    }
    if (bulk.length > 0) this.#channels.bulk.send(bulk);
  }

  /**
   * Starts to send; false if one is on its way already. `ended` is called with the outcome, also
   * after the peer is closed.
   */
  sendSnapshot(snapshot: OutgoingSnapshot, ended: (taken: boolean) => void): boolean {
    if (this.#snapshot !== undefined) return false;
    const to = { id: this.id, urls: this.#dialled, isEtcd: this.#etcd !== undefined };
    const sender = new SnapshotSender(this.#shared, to, snapshot, (message) =>
      this.#offer(message),
    );
    this.#snapshot = sender;
    sender.run().then((taken) => {
      this.#snapshot = undefined;
      ended(taken);
    });
    return true;
  }

  /** Announces a snapshot on the peer's own stream; resolves with the peer's request for it. */
  #offer(message: raftpb.Message): Promise<ServerHttp2Stream> {
    const { clock, options } = this.#shared;
    return new Promise((resolve, reject) => {
      const give = (code: "Failed" | "Timeout", text: string) => {
        this.#fetched = undefined;
        reject(new DialError(code, text));
      };
      if (!this.#channels.urgent.sendBack(message)) {
        give("Failed", "the peer has not dialled this member");
        return;
      }
      const timer = clock.after(options.dialTimeoutMs, () =>
        give("Timeout", "the peer does not come for it"),
      );
      this.#fetched = (stream) => {
        timer.cancel();
        this.#fetched = undefined;
        resolve(stream);
      };
    });
  }

  /** The peer comes for a snapshot; false if it was offered none. */
  fetched(stream: ServerHttp2Stream): boolean {
    const fetched = this.#fetched;
    fetched?.(stream);
    return fetched !== undefined;
  }

  update(urls: readonly string[]): void {
    this.#urls = urls;
    this.#saidUrls = this.#saidUrls.filter((url) => !urls.includes(url));
    const all = this.#dialled;
    this.#etcd?.update(all);
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
    return this.#etcd?.queued ?? this.#channels[kind].queued;
  }

  /** Ends everything with this peer; no listener is called after this. */
  close(): void {
    this.#closed = true;
    this.#etcd?.close();
    this.#closeChannels();
    this.#snapshot?.stop();
    this.#fetching?.stop();
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

  etcdOpened(): void {
    this.opened("urgent");
  }

  etcdLost(): void {
    if (!this.#closed) this.lost("urgent");
  }

  etcdRoundTrip(ms: number): void {
    this.roundTrip("urgent", ms);
  }

  etcdReceived(messages: readonly raftpb.Message[]): void {
    if (!this.#closed) this.#shared.listener.received(messages);
  }

  received(messages: readonly raftpb.Message[], url: string): void {
    const others = messages.filter((message) => message.type !== raftpb.MessageType.MsgSnap);
    if (others.length < messages.length) this.#fetch(url);
    if (others.length > 0) this.#shared.listener.received(others);
  }

  /** Comes for a snapshot that the peer has announced. One at a time: the peer sends no more. */
  #fetch(url: string): void {
    if (this.#fetching !== undefined || this.#closed) return;
    this.#fetching = new SnapshotFetch(this.#shared, this.#receiver, this.id);
    void this.#fetching.run(url).then(() => {
      this.#fetching = undefined;
    });
  }

  dropping(): void {
    // Not in the middle of a send: Raft may be the caller.
    this.#shared.clock.endOfTurn(() => {
      if (!this.#closed) this.#shared.listener.unreachable(this.id);
    });
  }
}
