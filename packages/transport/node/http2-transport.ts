/**
 * Members talking to members. To each peer lead two HTTP/2 connections with a long-lived stream of
 * messages each (stream.ts), one for entries and one for all else, so that a vote never waits
 * behind a batch; a snapshot goes over a third one of its own. Messages go to the side that was
 * dialled; where a peer cannot be dialled, they go back on the streams that it has dialled, and it
 * comes for its snapshots (snapshot-fetch.ts). So of two members one has to be able to dial the
 * other.
 */
import type { Random, SlotCounters } from "@quorate/host";
import { idToHex, raftpb } from "@quorate/proto";
import type { ChannelKind } from "../src/frames.ts";
import { MemberDirectory } from "../src/member-directory.ts";
import type { OutgoingSnapshot, PeerStatus, Transport } from "../src/transport.ts";
import type { Introduction } from "./headers.ts";
import { Incoming } from "./incoming.ts";
import { KeptConnections } from "./kept-connections.ts";
import {
  type Http2TransportDependencies,
  type Http2TransportOptions,
  peerFields,
  resolveOptions,
  type Shared,
  silentObserver,
} from "./options.ts";
import { Peer } from "./peer.ts";
import { type PeerBoundAddress, PeerServer } from "./peer-server.ts";
import { SnapshotReceiver } from "./snapshot-receiver.ts";

/** Connections for single messages to one member of etcd (etcd: connPerPipeline). */
const MAX_POSTING_CONNECTIONS = 4;
/** Less than etcd lets an idle connection live (etcd: ConnReadTimeout). */
const POSTING_IDLE_MS = 4000;

export class Http2Transport implements Transport {
  readonly #shared: Shared;
  readonly #server: PeerServer;
  readonly #incoming: Incoming;
  readonly #receiver: SnapshotReceiver;
  readonly #peers = new Map<bigint, Peer>();
  /**
   * Members that wrote to this one before it applied their addition: it is behind, and they may be
   * what it needs to catch up. Other members have reported them; they are dialled at the URLs that
   * these reported, and become peers when the log says so.
   */
  readonly #remotes = new Map<bigint, Peer>();
  readonly #directory: MemberDirectory;
  #snapshots = 0;
  #closed = false;

  /** Throws if the options make no sense. Nothing is opened before `listen` and `addPeer`. */
  constructor(options: Http2TransportOptions, dependencies: Http2TransportDependencies) {
    const random: Random = dependencies.random.fork("transport");
    const resolved = resolveOptions(options);
    this.#directory = new MemberDirectory({
      monotonicMs: () => dependencies.clock.monotonicMs(),
      knownUrls: (id) => this.#peers.get(id)?.status.urls,
      localUrls: options.localUrls,
      peerUrls: () => [...this.#peers.values()].flatMap((peer) => peer.status.urls),
      askMembers: dependencies.askMembers,
    });
    this.#shared = {
      options: resolved,
      directory: this.#directory,
      clock: dependencies.clock,
      random,
      logger: dependencies.logger,
      listener: dependencies.listener,
      observer: dependencies.observer ?? silentObserver,
      isRemoved: dependencies.isRemoved ?? (() => false),
      selfRemoved: dependencies.selfRemoved ?? (() => {}),
      takesEtcd: dependencies.takesEtcd ?? (() => true),
      etcdPosts: new KeptConnections(MAX_POSTING_CONNECTIONS, POSTING_IDLE_MS),
    };
    this.#receiver = new SnapshotReceiver(this.#shared);
    this.#incoming = new Incoming(this.#shared, this.#receiver, {
      heardFrom: (introduction) => this.#heardFrom(introduction),
      lent: (from, kind, carrier) => this.#find(from)?.lend(kind, carrier),
      fetched: (from, stream) => this.#find(from)?.fetched(stream) ?? false,
      attached: (from, stream, response) => {
        const peer = this.#find(from);
        if (peer === undefined) response.destroy();
        else peer.attach(stream, response);
      },
    });
    this.#server = new PeerServer(this.#shared, this.#incoming, dependencies.http);
  }

  /**
   * Opens the listen addresses, or none of them: rejects with Node's error if one cannot be opened.
   * In the order of the options.
   */
  listen(): Promise<PeerBoundAddress[]> {
    return this.#server.listen();
  }

  send(messages: readonly raftpb.Message[]): void {
    if (this.#closed) return;
    const first = messages[0]?.to;
    if (messages.every((message) => message.to === first)) {
      if (first !== undefined) this.#sendTo(first, messages);
      return;
    }
    const byPeer = new Map<bigint, raftpb.Message[]>();
    for (const message of messages) {
      const same = byPeer.get(message.to);
      if (same === undefined) byPeer.set(message.to, [message]);
      else same.push(message);
    }
    for (const [id, same] of byPeer) this.#sendTo(id, same);
  }

  #find(id: bigint): Peer | undefined {
    return this.#peers.get(id) ?? this.#remotes.get(id);
  }

  #sendTo(id: bigint, messages: readonly raftpb.Message[]): void {
    const peer = this.#find(id);
    if (peer === undefined) return;
    if (messages.some((message) => message.type === raftpb.MessageType.MsgSnap)) {
      throw new Error("a snapshot is sent by sendSnapshot, not by send");
    }
    peer.send(messages);
  }

  sendSnapshot(stream: OutgoingSnapshot): void {
    const id = stream.message.to;
    const peer = this.#find(id);
    const { clock, listener, options } = this.#shared;
    const ended = (taken: boolean) => {
      this.#snapshots--;
      if (!this.#closed) listener.snapshotSent(id, taken);
    };
    if (!this.#closed && peer !== undefined && this.#snapshots < options.maxSnapshots) {
      this.#snapshots++;
      if (peer.sendSnapshot(stream, ended)) return;
      this.#snapshots--;
    }
    void stream.body[Symbol.asyncIterator]().return?.();
    clock.endOfTurn(() => {
      if (!this.#closed) listener.snapshotSent(id, false);
    });
  }

  addPeer(id: bigint, urls: readonly string[]): void {
    if (this.#closed || id === this.#shared.options.selfId) return;
    if (this.#peers.has(id)) {
      this.updatePeer(id, urls);
      return;
    }
    this.#directory.applied(id);
    this.#shared.logger.info("starting remote peer", {
      "remote-peer-id": idToHex(id),
      "remote-peer-urls": urls,
    });
    const remote = this.#remotes.get(id);
    this.#remotes.delete(id);
    remote?.update(urls);
    const peer = remote ?? this.#newPeer(id, urls);
    this.#peers.set(id, peer);
    this.#shared.observer.known(id, true);
    peer.wake();
  }

  /** A peer that has the streams which its member has dialled already. */
  #newPeer(id: bigint, urls: readonly string[]): Peer {
    const peer = new Peer(this.#shared, this.#receiver, id, urls);
    for (const [kind, carrier] of this.#incoming.lentBy(id)) peer.lend(kind, carrier);
    return peer;
  }

  updatePeer(id: bigint, urls: readonly string[]): void {
    const peer = this.#peers.get(id);
    if (peer === undefined) return;
    const before = peer.status.urls;
    if (before.length === urls.length && before.every((url, i) => url === urls[i])) return;
    this.#directory.applied(id);
    this.#shared.logger.info("updated remote peer", {
      "remote-peer-id": idToHex(id),
      "updated-remote-peer-urls": urls,
    });
    peer.update(urls);
  }

  removePeer(id: bigint): void {
    const peer = this.#find(id);
    this.#directory.applied(id);
    this.#incoming.drop(id);
    if (peer === undefined) return;
    this.#shared.logger.info("removed remote peer", {
      "local-member-id": idToHex(this.#shared.options.selfId),
      "removed-remote-peer-id": idToHex(id),
    });
    this.#peers.delete(id);
    this.#remotes.delete(id);
    peer.close();
    this.#shared.observer.known(id, false);
  }

  peers(): readonly PeerStatus[] {
    return [...this.#peers.values()].map((peer) => peer.status);
  }

  /** Messages and bytes that wait for a peer on one of its channels; for metrics and tests. */
  queued(id: bigint, kind: ChannelKind): { readonly messages: number; readonly bytes: number } {
    return this.#peers.get(id)?.queued(kind) ?? { messages: 0, bytes: 0 };
  }

  /** Open connections to this member. */
  get incomingConnections(): number {
    return this.#server.connections;
  }

  /** What was counted of connections to this member that were refused or had to go. */
  get slotCounters(): SlotCounters {
    return this.#server.slotCounters;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const peer of this.#peers.values()) peer.close();
    for (const peer of this.#remotes.values()) peer.close();
    this.#shared.etcdPosts.close();
    await this.#server.close();
  }

  #heardFrom({ from, urls }: Introduction): void {
    const known = this.#peers.get(from);
    if (known !== undefined) {
      known.heardFrom(urls);
      return;
    }
    const { logger, options } = this.#shared;
    const remote = this.#remotes.get(from);
    const reported = this.#directory.reportedUrls(from);
    if (
      remote !== undefined ||
      reported === undefined ||
      this.#remotes.size >= options.maxRemotes
    ) {
      remote?.heardFrom(urls);
      return;
    }
    logger.info("added remote peer", {
      ...peerFields(this.#shared, from),
      "remote-peer-urls": reported,
    });
    const added = this.#newPeer(from, reported);
    this.#remotes.set(from, added);
    added.wake();
  }
}
