/**
 * The network between members: every pair has two links, one for each direction, and each may be slow, lossy, cut or stalled.
 *
 * Messages go through the codec. Whatever a connection would not repeat by itself (a forwarded proposal) is not doubled.
 */
import type { Random } from "@quorate/host";
import { raftpb } from "@quorate/proto";
import type { TransportRequest } from "@quorate/server";
import type { PeerStatus, SnapshotStream, Transport } from "@quorate/transport";
import type { Safety } from "./check/safety.ts";
import type { SimOptions } from "./options.ts";
import { madeUpAnswers } from "./planted.ts";
import type { Story } from "./report/story.ts";
import type { Process, Scheduler } from "./scheduler.ts";

/** One direction between two members. */
export interface Link {
  cut: boolean;
  /** Added to the latency of each message. */
  slowMs: number;
  /** While set, messages wait here. */
  stalled: (() => void)[] | undefined;
  /** When the last message in order arrives. */
  lastArrivalMs: number;
}

/** A member's end of the network while one process of it lives. */
interface Station {
  readonly name: string;
  readonly process: Process;
  readonly request: TransportRequest;
  /** Where it can be reached. */
  readonly urls: readonly string[];
  /** Where members that have talked to it say that they are: they can be answered there, known or not, as by the real transport. */
  readonly heard: Map<bigint, readonly string[]>;
}

/** Where a member is tried: at the addresses that it is known by, and at those that it named itself. */
interface Addresses {
  readonly known: readonly string[] | undefined;
  readonly heard: readonly string[] | undefined;
}

/** What answers at a peer URL. */
export interface PeerPort {
  readonly name: string;
  readonly process: Process;
  /** @param body undefined for a request that only gets */
  answer(path: string, body: Uint8Array | undefined): Promise<PeerAnswer>;
}

/** What is asked there; without a body it only gets. */
export interface PeerRequest {
  readonly url: string;
  readonly path: string;
  readonly body: Uint8Array | undefined;
  readonly timeoutMs: number;
}

export interface PeerAnswer {
  readonly status: number;
  readonly body: Uint8Array;
  readonly clusterId?: string | undefined;
}

const TYPE_NAMES = new Map(Object.entries(raftpb.MessageType).map(([name, value]) => [value as number, name]));

/** A receiver gives up on a snapshot of which nothing came for so long. */
const SNAPSHOT_STALL_MS = 30_000;
/** Bytes of a snapshot that arrive together. */
const SNAPSHOT_PIECE_BYTES = 16 * 1024;

export class Network {
  readonly #options: SimOptions;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #safety: Safety;
  readonly #story: Story;
  readonly #stations = new Map<bigint, Station>();
  readonly #transports = new Map<bigint, Transport>();
  /** By who sends, then by who receives. */
  readonly #links = new Map<string, Map<string, Link>>();
  readonly #peerPorts = new Map<string, PeerPort>();
  /** While false, links do what they are there for. */
  faulty = true;
  messages = 0;
  snapshots = 0;
  #epoch = 0;

  constructor(options: SimOptions, deps: { scheduler: Scheduler; random: Random; safety: Safety; story: Story }) {
    this.#options = options;
    this.#scheduler = deps.scheduler;
    this.#random = deps.random;
    this.#safety = deps.safety;
    this.#story = deps.story;
  }

  link(from: string, to: string): Link {
    let links = this.#links.get(from);
    if (links === undefined) this.#links.set(from, (links = new Map()));
    let link = links.get(to);
    if (link === undefined) links.set(to, (link = { cut: false, slowMs: 0, stalled: undefined, lastArrivalMs: 0 }));
    return link;
  }

  /** Everything that was cut, slow or stalled is well again. */
  heal(): void {
    this.faulty = false;
    const all = [...this.#links].flatMap(([from, links]) => [...links].map(([to, link]) => [`${from}>${to}`, link] as const));
    for (const [, link] of all.sort(([a], [b]) => (a < b ? -1 : 1))) {
      link.cut = false;
      link.slowMs = 0;
      this.release(link);
    }
  }

  /** Delivers all that a stalled link held back. */
  release(link: Link): void {
    const waiting = link.stalled ?? [];
    link.stalled = undefined;
    for (const deliver of waiting) deliver();
  }

  /** @param urls where the member listens: who dials another address does not reach it */
  open(name: string, process: Process, request: TransportRequest, urls: readonly string[]): Transport {
    const station: Station = { name, process, request, urls, heard: new Map() };
    this.#stations.set(request.memberId, station);
    const transport = new SimTransport(this, station, this.#scheduler);
    this.#transports.set(request.memberId, transport);
    return transport;
  }

  latencyMs(link: Link): number {
    const { latencyMs, jitterMs } = this.#options;
    return latencyMs + this.#random.unit() * jitterMs + link.slowMs;
  }

  /** A member's request to another one's peer port, as HTTP would bring it. Rejects where no answer comes in time. */
  call(name: string, process: Process, request: PeerRequest): Promise<PeerAnswer> {
    const { url, path, body, timeoutMs } = request;
    const scheduler = this.#scheduler;
    return new Promise((resolve, reject) => {
      const fail = (reason: string) => reject(new Error(`${url}: ${reason}`));
      scheduler.after(timeoutMs, () => fail("no answer in time"), process);
      const target = this.#peerPorts.get(url);
      if (target === undefined || !target.process.alive) {
        scheduler.after(this.latencyMs(this.link(name, "nobody")), () => fail("connection refused"), process);
        return;
      }
      const there = this.link(name, target.name);
      const back = this.link(target.name, name);
      this.#carry(there, () => {
        if (!target.process.alive) return;
        const ask = () => {
          target.answer(path, body).then(
            (answer) => {
              if (target.process.alive) this.#carry(back, () => scheduler.after(0, () => resolve(answer), process));
            },
            () => {},
          );
        };
        scheduler.after(0, ask, target.process);
      });
    });
  }

  /** Brings something over a link, unless it is cut or loses it. */
  #carry(link: Link, arrive: () => void): void {
    if (link.cut || (this.faulty && this.#options.loss > 0 && this.#random.unit() < this.#options.loss)) return;
    this.#scheduler.after(this.latencyMs(link), () => {
      if (link.cut) return;
      if (link.stalled !== undefined) link.stalled.push(arrive);
      else arrive();
    });
  }

  /** From now on the requests to a peer URL are answered by this process. */
  listen(url: string, port: PeerPort): void {
    this.#peerPorts.set(url, port);
  }

  /** Where the last process of a member dials its peers. */
  dialledBy(id: bigint): readonly PeerStatus[] {
    return this.#transports.get(id)?.peers() ?? [];
  }

  /** Nothing that is on its way arrives any more. */
  dropAll(): void {
    this.#epoch++;
    for (const links of this.#links.values()) for (const link of links.values()) if (link.stalled !== undefined) link.stalled = [];
  }

  /** The member of this id, if it listens at one of these addresses. */
  #at(id: bigint, { known, heard }: Addresses): Station | undefined {
    const station = this.#stations.get(id);
    if (station === undefined || station.urls === heard) return station;
    return station.urls.some((url) => known?.includes(url) === true || heard?.includes(url) === true) ? station : undefined;
  }

  /** Whether a member could be talked to at this moment. */
  isReached(from: string, id: bigint, addresses: Addresses): boolean {
    const target = this.#at(id, addresses);
    return target?.process.alive === true && !this.link(from, target.name).cut && !this.link(target.name, from).cut;
  }

  /** @param to the member the message is for. @param addresses where it is thought to be */
  send(from: Station, to: bigint, message: raftpb.Message, addresses: Addresses): void {
    if (!from.process.alive) return;
    const bytes = raftpb.Message.encode(message);
    const target = this.#at(to, addresses);
    const toName = target?.name ?? "nobody";
    this.messages++;
    const { type, term, index, commit, reject, entries } = message;
    const text = () => {
      const entriesText = entries.length > 0 ? ` +${entries.length} entries` : "";
      return `${TYPE_NAMES.get(type)} term ${term} index ${index} commit ${commit}${entriesText}${reject ? " reject" : ""}`;
    };
    this.#story.tell(from.name, () => `sends ${toName} ${text()}`, bytes, Number(to & 0x7fff_ffffn));
    this.#safety.sent(from.name, message);
    for (const answer of madeUpAnswers(this.#options.bug, [message])) {
      this.#scheduler.after(0, () => from.request.listener.received([answer]), from.process);
    }
    if (target === undefined) return;
    const { loss, duplication } = this.#options;
    const link = this.link(from.name, toName);
    const isLost = link.cut || (this.faulty && loss > 0 && this.#random.unit() < loss);
    if (isLost || !target.process.alive) {
      if (this.#random.below(4) === 0)
        this.#scheduler.after(this.latencyMs(link), () => from.request.listener.unreachable(to), from.process);
      return;
    }
    this.#deliver(link, from, to, bytes, text);
    const isDoubled = this.faulty && duplication > 0 && type !== raftpb.MessageType.MsgProp && this.#random.unit() < duplication;
    if (isDoubled) this.#deliver(link, from, to, bytes, text);
  }

  #deliver(link: Link, from: Station, to: bigint, bytes: Uint8Array, text: () => string): void {
    const now = this.#scheduler.nowMs;
    const { reordering } = this.#options;
    let arrivalMs = now + this.latencyMs(link);
    const overtakes = this.faulty && reordering > 0 && this.#random.unit() < reordering;
    if (overtakes) arrivalMs += this.#random.unit() * 20 * this.#options.latencyMs;
    else link.lastArrivalMs = arrivalMs = Math.max(arrivalMs, link.lastArrivalMs);
    const epoch = this.#epoch;
    const arrive = () => {
      if (epoch !== this.#epoch) return;
      const target = this.#stations.get(to);
      if (target === undefined || !target.process.alive) return;
      if (target.request.isRemoved(from.request.memberId)) {
        const back = this.link(target.name, from.name);
        if (!back.cut) this.#scheduler.after(this.latencyMs(back), () => from.request.selfRemoved(), from.process);
        return;
      }
      target.heard.set(from.request.memberId, from.urls);
      const hear = () => {
        this.#story.tell(target.name, () => `hears ${from.name} ${text()}`, bytes);
        target.request.listener.received([raftpb.Message.decode(bytes)]);
      };
      // A process that is stopped does not read: its socket keeps the bytes.
      if (target.process.paused) this.#scheduler.after(0, hear, target.process);
      else hear();
    };
    this.#scheduler.after(arrivalMs - now, () => {
      if (link.cut) return;
      if (link.stalled !== undefined) link.stalled.push(arrive);
      else arrive();
    });
  }

  /** Streams a snapshot; resolves with whether the peer took it over, as far as the sender can know. */
  async stream(from: Station, stream: SnapshotStream, addresses: Addresses): Promise<boolean> {
    const { to } = stream.message;
    this.snapshots++;
    this.#safety.sent(from.name, stream.message);
    const target = this.#at(to, addresses);
    const announced = raftpb.Message.encode(stream.message);
    this.#story.tell(from.name, `sends ${target?.name ?? "nobody"} a snapshot at ${stream.message.snapshot?.metadata.index}`, announced);
    const scheduler = this.#scheduler;
    if (target === undefined || !target.process.alive) return false;
    const link = this.link(from.name, target.name);
    const random = this.#random;
    const latency = () => this.latencyMs(link);
    const breaks = () =>
      !from.process.alive || link.cut || (this.faulty && this.#options.loss > 0 && random.unit() < this.#options.loss / 2);
    const chunks = stream.body[Symbol.asyncIterator]();
    const nextChunk = () =>
      new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
        const gone = () => scheduler.after(latency(), () => reject(new Error("the connection broke")), target.process);
        const forget = from.process.onEnd(gone);
        const stalled = scheduler.after(SNAPSHOT_STALL_MS, () => reject(new Error("nothing came for too long")), target.process);
        const over = () => {
          forget();
          stalled.cancel();
        };
        if (!from.process.alive) gone();
        else chunks.next().then(resolve, reject).finally(over);
      });
    async function* body(): AsyncGenerator<Uint8Array> {
      for (;;) {
        const { value: chunk, done } = await nextChunk();
        if (done === true) return;
        for (let at = 0; at < chunk.length; at += SNAPSHOT_PIECE_BYTES) {
          await scheduler.delay(latency(), target!.process);
          if (breaks()) throw new Error("the connection broke");
          yield chunk.slice(at, at + SNAPSHOT_PIECE_BYTES);
        }
      }
    }
    await scheduler.delay(latency(), from.process);
    if (link.cut || !target.process.alive) return false;
    return new Promise((resolve) => {
      const forget = target.process.onEnd(() => scheduler.after(latency(), () => resolve(false), from.process));
      const end = (taken: boolean) => {
        forget();
        const back = this.link(target.name, from.name);
        this.#story.tell(target.name, `${taken ? "took" : "did not take"} the snapshot of ${from.name}`);
        scheduler.after(latency(), () => resolve(taken && !back.cut), from.process);
      };
      scheduler.after(
        0,
        () => {
          target.request.listener.snapshotReceived({ message: raftpb.Message.decode(announced), body: body() }).then(
            () => end(true),
            () => end(false),
          );
        },
        target.process,
      );
    });
  }
}

class SimTransport implements Transport {
  readonly #network: Network;
  readonly #station: Station;
  readonly #scheduler: Scheduler;
  readonly #peers = new Map<bigint, readonly string[]>();
  #closed = false;

  constructor(network: Network, station: Station, scheduler: Scheduler) {
    this.#network = network;
    this.#station = station;
    this.#scheduler = scheduler;
  }

  send(messages: readonly raftpb.Message[]): void {
    if (this.#closed) return;
    for (const message of messages) {
      const { to } = message;
      const addresses = this.#addressesOf(to);
      if (addresses.known !== undefined || addresses.heard !== undefined) this.#network.send(this.#station, to, message, addresses);
    }
  }

  sendSnapshot(stream: SnapshotStream): void {
    const { to } = stream.message;
    const tell = (taken: boolean) => {
      if (!this.#closed) this.#station.request.listener.snapshotSent(to, taken);
    };
    if (this.#closed || !this.#peers.has(to)) {
      this.#scheduler.after(0, () => tell(false), this.#station.process);
      return;
    }
    this.#network.stream(this.#station, stream, this.#addressesOf(to)).then(tell, () => tell(false));
  }

  #addressesOf(id: bigint): Addresses {
    return { known: this.#peers.get(id), heard: this.#station.heard.get(id) };
  }

  addPeer(id: bigint, urls: readonly string[]): void {
    this.#peers.set(id, urls);
  }

  updatePeer(id: bigint, urls: readonly string[]): void {
    this.#peers.set(id, urls);
  }

  removePeer(id: bigint): void {
    this.#peers.delete(id);
    this.#station.heard.delete(id);
  }

  peers(): readonly PeerStatus[] {
    return [...this.#peers].map(([id, urls]) => {
      const isReached = this.#network.isReached(this.#station.name, id, this.#addressesOf(id));
      return { id, urls, activeSinceMs: isReached ? 0 : undefined, roundTripMs: isReached ? 1 : undefined };
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
  }
}
