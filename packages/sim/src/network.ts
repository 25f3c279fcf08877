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
  decodeMessage,
  type OutgoingSnapshot,
  type PeerStatus,
} from "@quorate/transport";
import type { SimOptions } from "./base/options.ts";
import type { Process, Scheduler } from "./base/scheduler.ts";
import type { Safety } from "./check/safety.ts";
import { asEtcdSends } from "./etcd/etcd-member.ts";
import { etcdKindOf } from "./etcd/etcd-wire.ts";
import { Links } from "./links.ts";
import { PeerPorts } from "./peer-ports.ts";
import { madeUpAnswers } from "./planted/planted.ts";
import type { Story } from "./report/story.ts";
import { type Addresses, SimTransport, type Station } from "./sim-transport.ts";
import { carrySnapshot } from "./snapshot-ways.ts";
import type { Connection, Sent, WireEnds } from "./wire/wire.ts";
import { Wires } from "./wire/wires.ts";

/** A message for people to read. */
function textOf({ type, term, index, commit, reject, entries }: raftpb.Message): string {
  const entriesText = entries.length > 0 ? ` +${entries.length} entries` : "";
  return `${TYPE_NAMES.get(type)} term ${term} index ${index} commit ${commit}${entriesText}${reject ? " reject" : ""}`;
}

const TYPE_NAMES = new Map(
  Object.entries(raftpb.MessageType).map(([name, value]) => [value as number, name]),
);

/** Of messages between members of etcd and others, one in so many goes by itself. */
const POSTED_SHARE = 6;

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
  readonly #postRandom: Random;
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
    this.#postRandom = deps.random.fork("posts");
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

  /**
   * @param isEtcd whether it is a member of etcd's
   * @param urls where the member listens: who dials another address does not reach it
   */
  make(
    { name, isEtcd }: { readonly name: string; readonly isEtcd: boolean },
    process: Process,
    request: TransportRequest,
    urls: readonly string[],
  ): SimTransport {
    const station: Station = { name, isEtcd, process, request, urls, heard: new Map() };
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
    for (const message of from.isEtcd ? asEtcdSends(messages) : messages) {
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
      if (target !== undefined) this.#put({ message, encoded }, from, target, batches);
    }
    if (target === undefined) return;
    if (batches.urgent.length > 0) this.#wires.write(from, target, "urgent", batches.urgent);
    if (batches.bulk.length > 0) this.#wires.write(from, target, "bulk", batches.bulk);
  }

  /** Puts a message into a batch: once, twice, not at all, or into a batch of its own later. */
  #put(
    sent: Sent,
    from: Station,
    target: Station,
    batches: Readonly<Record<ChannelKind, Sent[]>>,
  ): void {
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
    const isEtcd = from.isEtcd || target.isEtcd;
    const kind = (isEtcd ? etcdKindOf : channelKindOf)(sent.message);
    if (isEtcd && this.links.faulty && this.#postRandom.below(POSTED_SHARE) === 0) {
      this.#post(sent, from, target);
      return;
    }
    for (let i = 0; i < copies; i++) {
      if (!this.links.happens(reordering)) {
        batches[kind].push(sent);
        continue;
      }
      const late = () => {
        if (epoch === this.#epoch && !link.cut) this.#wires.write(from, target, kind, [sent]);
      };
      this.#scheduler.after(this.#random.unit() * 20 * latencyMs, late);
    }
  }

  /**
   * POST /raft: a message by itself, as etcd sends while the other one has no stream here yet. It
   * overtakes what is on streams, and is overtaken.
   */
  #post(sent: Sent, from: Station, target: Station): void {
    const link = this.links.link(from.name, target.name);
    const taken = () => {
      const isTaken = this.#transports
        .get(target.request.memberId)
        ?.takesFrom(from.request.memberId);
      if (isTaken === true)
        this.#received({ from, target }, [decodeMessage(sent.encoded)], [sent.encoded]);
    };
    this.links.carry(link, () => this.#scheduler.after(0, taken, target.process));
  }

  /**
   * Whether the side that was dialled drops the other one's connections: that was removed from the
   * cluster, as the dialled side knows it. A sender that was removed is notified.
   */
  #drops({ from, target, isReturn }: Connection): boolean {
    if (from.isEtcd || target.isEtcd) return this.#dropsEtcd(from, target);
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

  /** A reader of etcd's is told that it was removed, and so is a sender. */
  #dropsEtcd(from: Station, target: Station): boolean {
    const pairs = [
      [from, target],
      [target, from],
    ] as const;
    const found = pairs.find(([one, other]) =>
      one.request.questions.isRemoved(other.request.memberId),
    );
    if (found === undefined) return false;
    const [one, other] = found;
    const link = this.links.link(one.name, other.name);
    if (!link.cut)
      this.#scheduler.after(
        this.links.latencyMs(link),
        () => other.request.questions.selfRemoved(),
        other.process,
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
    { from, target }: Pick<Connection, "from" | "target">,
    messages: readonly raftpb.Message[],
    frames: readonly Uint8Array[],
  ): void {
    for (const [i, message] of messages.entries()) {
      this.#story.record(target.name, () => `hears ${from.name} ${textOf(message)}`, frames[i]);
    }
    target.request.listener.received(messages);
  }

  /** The sender finds its connection closed. */
  #damaged({ from, target }: Connection): void {
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
  stream(from: Station, stream: OutgoingSnapshot, addresses: Addresses): Promise<boolean> {
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
      loss,
      fail: this.#fail,
    };
    if (!from.isEtcd && !target.isEtcd)
      return carrySnapshot(
        { from, target, announced, body: stream.body, form: "quorate" },
        { ...deps, corruption },
      );
    const file = stream.forEtcd?.() ?? Promise.reject(new Error("there is no file"));
    return file.then((sent) =>
      carrySnapshot(
        {
          from,
          target,
          announced: raftpb.Message.encode(sent.message),
          body: sent.body,
          form: "etcd",
        },
        // etcd's files have no checksums: TLS alone notices a change.
        { ...deps, corruption: 0 },
      ),
    );
  }
}
