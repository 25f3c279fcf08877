/**
 * The network between members, over the links that each pair of them has. A member that dials an
 * address reaches the one that listens there, and no other.
 *
 * Messages are bytes on the transport's own connections (wire/). Whatever a member would not repeat
 * by itself (a forwarded proposal) is not doubled.
 */
import type { Random } from "@quorate/host";
import type { TransportRequest } from "@quorate/member";
import { raftpb } from "@quorate/proto";
import {
  type ChannelKind,
  channelKindOf,
  type PeerStatus,
  type SnapshotStream,
} from "@quorate/transport";
import type { SimOptions } from "./base/options.ts";
import type { Process, Scheduler } from "./base/scheduler.ts";
import type { Safety } from "./check/safety.ts";
import { Links } from "./links.ts";
import { PeerPorts } from "./peer-ports.ts";
import { madeUpAnswers } from "./planted/planted.ts";
import type { Story } from "./report/story.ts";
import { type Addresses, SimTransport, type Station } from "./sim-transport.ts";
import { carrySnapshot } from "./snapshot-ways.ts";
import type { Sent, Wire, WireEnds } from "./wire/wire.ts";
import { Wires } from "./wire/wires.ts";

/** A message for people to read. */
function textOf({ type, term, index, commit, reject, entries }: raftpb.Message): string {
  const entriesText = entries.length > 0 ? ` +${entries.length} entries` : "";
  return `${TYPE_NAMES.get(type)} term ${term} index ${index} commit ${commit}${entriesText}${reject ? " reject" : ""}`;
}

const TYPE_NAMES = new Map(
  Object.entries(raftpb.MessageType).map(([name, value]) => [value as number, name]),
);

export interface NetworkDeps {
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly safety: Safety;
  readonly story: Story;
  /** Something is wrong that no event would show. */
  fail(error: unknown): void;
}

export class Network {
  readonly #options: SimOptions;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #safety: Safety;
  readonly #story: Story;
  readonly #stations = new Map<bigint, Station>();
  readonly #transports = new Map<bigint, SimTransport>();
  readonly #wires: Wires;
  readonly #snapshotRandom: Random;
  readonly #fail: (error: unknown) => void;
  readonly links: Links;
  /** What members ask each other at their peer URLs. */
  readonly ports: PeerPorts;
  messages = 0;
  snapshots = 0;
  #epoch = 0;

  constructor(options: SimOptions, deps: NetworkDeps) {
    this.#options = options;
    this.#scheduler = deps.scheduler;
    this.#random = deps.random;
    this.#safety = deps.safety;
    this.#story = deps.story;
    this.#snapshotRandom = deps.random.fork("snapshots");
    this.#fail = (error) => deps.fail(error);
    this.links = new Links(options, deps);
    this.ports = new PeerPorts(this.links, deps.scheduler);
    this.#wires = new Wires(options, {
      links: this.links,
      scheduler: deps.scheduler,
      random: deps.random.fork("wires"),
      accepts: (wire) => this.#accepts(wire),
      drops: (wire) => this.#drops(wire),
      received: (wire, messages, frames) => this.#received(wire, messages, frames),
      damaged: (wire) => this.#damaged(wire),
    });
  }

  /** @param urls where the member listens: who dials another address does not reach it */
  make(
    name: string,
    process: Process,
    request: TransportRequest,
    urls: readonly string[],
  ): SimTransport {
    const station: Station = { name, process, request, urls, heard: new Map() };
    const transport = new SimTransport(this, station, this.#scheduler, () => {
      this.#stations.set(request.memberId, station);
      this.#transports.set(request.memberId, transport);
    });
    return transport;
  }

  /** Where the last process of a member dials its peers. */
  dialledBy(id: bigint): readonly PeerStatus[] {
    return this.#transports.get(id)?.peers() ?? [];
  }

  /** Nothing that is on its way arrives any more. */
  dropAll(): void {
    this.#epoch++;
    this.#wires.dropAll();
    this.links.dropStalled();
  }

  /** The member of this id, if it listens at one of these addresses. */
  #at(id: bigint, { known, heard }: Addresses): Station | undefined {
    const station = this.#stations.get(id);
    if (station === undefined || station.urls === heard) return station;
    return station.urls.some(
      (url) => known?.includes(url) === true || heard?.includes(url) === true,
    )
      ? station
      : undefined;
  }

  /**
   * Whether there is a way for messages, as far as dialling goes: the sender can dial the receiver,
   * or the receiver knows where the sender is, and has dialled it.
   */
  #hasWay(from: Station, target: Station): boolean {
    if (this.links.canDial(target.name)) return true;
    const id = from.request.memberId;
    const dialled = this.#transports.get(target.request.memberId)?.addressesOf(id);
    return dialled !== undefined && this.links.canDial(from.name) && this.#at(id, dialled) === from;
  }

  /** Whether a member could be talked to at this moment. */
  isReached(from: Station, id: bigint, addresses: Addresses): boolean {
    const target = this.#at(id, addresses);
    return (
      target?.process.alive === true &&
      this.#hasWay(from, target) &&
      !this.links.link(from.name, target.name).cut &&
      !this.links.link(target.name, from.name).cut
    );
  }

  /**
   * Sends messages that leave a member in one turn. Those that get lost, come twice or come late do
   * so before they are put onto a connection: the connection itself keeps them in order.
   * @param to the member the messages are for. @param addresses where it is thought to be
   */
  send(from: Station, to: bigint, messages: readonly raftpb.Message[], addresses: Addresses): void {
    if (!from.process.alive) return;
    const target = this.#at(to, addresses);
    const toName = target?.name ?? "no member";
    const batches: Record<ChannelKind, Sent[]> = { urgent: [], bulk: [] };
    for (const message of messages) {
      const encoded = raftpb.Message.encode(message);
      this.messages++;
      this.#story.record(
        from.name,
        () => `sends ${toName} ${textOf(message)}`,
        encoded,
        Number(to & 0x7fff_ffffn),
      );
      this.#safety.sent(from.name, message);
      for (const answer of madeUpAnswers(this.#options.bug, [message])) {
        this.#scheduler.after(0, () => from.request.listener.received([answer]), from.process);
      }
      if (target !== undefined)
        this.#put({ message, encoded }, from, target, batches[channelKindOf(message)]);
    }
    if (target === undefined) return;
    if (batches.urgent.length > 0) this.#wires.write(from, target, "urgent", batches.urgent);
    if (batches.bulk.length > 0) this.#wires.write(from, target, "bulk", batches.bulk);
  }

  /** Puts a message into a batch: once, twice, not at all, or into a batch of its own later. */
  #put(sent: Sent, from: Station, target: Station, batch: Sent[]): void {
    const { loss, duplication, reordering, latencyMs } = this.#options;
    const { type, to } = sent.message;
    const link = this.links.link(from.name, target.name);
    const isLost = link.cut || this.links.happens(loss);
    if (isLost || !target.process.alive || !this.#hasWay(from, target)) {
      if (this.#random.below(4) === 0)
        this.#scheduler.after(
          this.links.latencyMs(link),
          () => from.request.listener.unreachable(to),
          from.process,
        );
      return;
    }
    const copies = type !== raftpb.MessageType.MsgProp && this.links.happens(duplication) ? 2 : 1;
    const epoch = this.#epoch;
    for (let i = 0; i < copies; i++) {
      if (!this.links.happens(reordering)) {
        batch.push(sent);
        continue;
      }
      const late = () => {
        if (epoch === this.#epoch && !link.cut)
          this.#wires.write(from, target, channelKindOf(sent.message), [sent]);
      };
      this.#scheduler.after(this.#random.unit() * 20 * latencyMs, late);
    }
  }

  /**
   * Whether the side that was dialled drops the other one's connections: that was removed from the
   * cluster, as the dialled side knows it. A sender that was removed is notified.
   */
  #drops({ from, target, isReturn }: Wire): boolean {
    if (isReturn) return from.request.questions.isRemoved(target.request.memberId);
    if (!target.request.questions.isRemoved(from.request.memberId)) return false;
    const back = this.links.link(target.name, from.name);
    if (!back.cut)
      this.#scheduler.after(
        this.links.latencyMs(back),
        () => from.request.questions.selfRemoved(),
        from.process,
      );
    return true;
  }

  #accepts({ from, target, isReturn }: WireEnds): boolean {
    const [dialler, acceptor] = isReturn ? [target, from] : [from, target];
    const { memberId } = dialler.request;
    if (this.#transports.get(acceptor.request.memberId)?.takesFrom(memberId) !== true) return false;
    acceptor.heard.set(memberId, dialler.urls);
    return true;
  }

  #received(
    { from, target }: Wire,
    messages: readonly raftpb.Message[],
    frames: readonly Uint8Array[],
  ): void {
    for (const [i, message] of messages.entries()) {
      this.#story.record(target.name, () => `hears ${from.name} ${textOf(message)}`, frames[i]);
    }
    target.request.listener.received(messages);
  }

  /** The sender finds its connection closed. */
  #damaged({ from, target }: Wire): void {
    this.#story.record(target.name, `ends a connection of ${from.name}: damaged bytes`);
    const back = this.links.link(target.name, from.name);
    const { memberId } = target.request;
    this.#scheduler.after(
      this.links.latencyMs(back),
      () => from.request.listener.unreachable(memberId),
      from.process,
    );
  }

  /**
   * Streams a snapshot; resolves with whether the peer took it over, as far as the sender can know.
   */
  stream(from: Station, stream: SnapshotStream, addresses: Addresses): Promise<boolean> {
    const { message } = stream;
    this.snapshots++;
    this.#safety.sent(from.name, message);
    this.#safety.keptLog.sent(from.name, message);
    const target = this.#at(message.to, addresses);
    const announced = raftpb.Message.encode(message);
    this.#story.record(
      from.name,
      `sends ${target?.name ?? "no member"} a snapshot at ${message.snapshot?.metadata.index}`,
      announced,
    );
    if (target === undefined || !target.process.alive || !this.#hasWay(from, target))
      return Promise.resolve(false);
    if (this.#transports.get(message.to)?.takesFrom(from.request.memberId) !== true)
      return Promise.resolve(false);
    const { loss, corruption } = this.#options;
    const deps = {
      links: this.links,
      scheduler: this.#scheduler,
      random: this.#snapshotRandom,
      story: this.#story,
    };
    return carrySnapshot(
      { from, target, announced, body: stream.body },
      { ...deps, loss, corruption, fail: this.#fail },
    );
  }
}
