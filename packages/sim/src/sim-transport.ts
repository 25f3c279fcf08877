/** A member's transport in the simulated network, and its end of that. */

import type { TransportRequest } from "@quorate/member";
import type { MemberTransport } from "@quorate/member/testing";
import type { raftpb } from "@quorate/proto";
import { MemberDirectory, type OutgoingSnapshot, type PeerStatus } from "@quorate/transport";
import type { Process, Scheduler } from "./base/scheduler.ts";

/** A member's end of the network while one process of it lives. */
export interface Station {
  readonly name: string;
  readonly process: Process;
  readonly request: TransportRequest;
  /** Whether it is a member of etcd's. */
  readonly isEtcd: boolean;
  /** Where it can be reached. */
  readonly urls: readonly string[];
  /**
   * Where members that have talked to it say that they are: they can be answered there, known or
   * not, as by the real transport.
   */
  readonly heard: Map<bigint, readonly string[]>;
}

/**
 * Where a member is tried: at the addresses that it is known by, and at those that it named itself.
 */
export interface Addresses {
  readonly known: readonly string[] | undefined;
  readonly heard: readonly string[] | undefined;
}

/** What lies between the members. */
export interface Carrier {
  send(from: Station, to: bigint, messages: readonly raftpb.Message[], addresses: Addresses): void;
  /** Resolves with whether the peer took the snapshot over, as far as the sender can know. */
  stream(from: Station, stream: OutgoingSnapshot, addresses: Addresses): Promise<boolean>;
  /** Whether a member could be talked to at this moment. */
  isReached(from: Station, id: bigint, addresses: Addresses): boolean;
}

/** Hands what leaves a member to the network, with where its peers may be reached. */
export class SimTransport implements MemberTransport {
  readonly #network: Carrier;
  readonly #station: Station;
  readonly #opened: () => void;
  readonly #scheduler: Scheduler;
  readonly #peers = new Map<bigint, readonly string[]>();
  readonly #directory: MemberDirectory;
  #closed = false;

  /** @param opened called when it listens */
  constructor(network: Carrier, station: Station, scheduler: Scheduler, opened: () => void) {
    this.#opened = opened;
    this.#network = network;
    this.#station = station;
    this.#scheduler = scheduler;
    this.#directory = new MemberDirectory({
      monotonicMs: () => scheduler.nowMs,
      knownUrls: (id) => this.#peers.get(id),
      localUrls: [],
      peerUrls: () => [...this.#peers.values()].flat(),
      askMembers: station.request.questions.askMembers,
    });
  }

  /**
   * Whether messages of this sender are taken, as by the real transport: those of members alone.
   */
  takesFrom(id: bigint): boolean {
    return this.#directory.standingOf(id, () => true) === "member";
  }

  send(messages: readonly raftpb.Message[]): void {
    if (this.#closed) return;
    const byPeer = new Map<bigint, raftpb.Message[]>();
    for (const message of messages) {
      const same = byPeer.get(message.to);
      if (same === undefined) byPeer.set(message.to, [message]);
      else same.push(message);
    }
    for (const [to, same] of byPeer) {
      const addresses = this.addressesOf(to);
      if (addresses.known !== undefined || addresses.heard !== undefined)
        this.#network.send(this.#station, to, same, addresses);
    }
  }

  sendSnapshot(stream: OutgoingSnapshot): void {
    const { to } = stream.message;
    const finish = (taken: boolean) => {
      if (!this.#closed) this.#station.request.listener.snapshotSent(to, taken);
    };
    if (this.#closed || !this.#peers.has(to)) {
      this.#scheduler.after(0, () => finish(false), this.#station.process);
      return;
    }
    this.#network
      .stream(this.#station, stream, this.addressesOf(to))
      .then(finish, () => finish(false));
  }

  /** Where this member dials another one. */
  addressesOf(id: bigint): Addresses {
    return { known: this.#peers.get(id), heard: this.#station.heard.get(id) };
  }

  async listen(): Promise<void> {
    this.#opened();
  }

  addPeer(id: bigint, urls: readonly string[]): void {
    this.#peers.set(id, urls);
    this.#directory.applied(id);
  }

  updatePeer(id: bigint, urls: readonly string[]): void {
    this.#peers.set(id, urls);
    this.#directory.applied(id);
  }

  removePeer(id: bigint): void {
    this.#directory.applied(id);
    this.#peers.delete(id);
    this.#station.heard.delete(id);
  }

  peers(): readonly PeerStatus[] {
    return [...this.#peers].map(([id, urls]) => {
      const isReached = this.#network.isReached(this.#station, id, this.addressesOf(id));
      return {
        id,
        urls,
        activeSinceMs: isReached ? 0 : undefined,
        roundTripMs: isReached ? 1 : undefined,
      };
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
  }
}
