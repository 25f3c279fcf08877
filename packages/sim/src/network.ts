/**
 * The network between members, over the links that each pair of them has. Who dials an address
 * reaches who listens there, and nobody else.
 *
 * Messages go through the codec. Whatever a connection would not repeat by itself (a forwarded
 * proposal) is not doubled.
 */
import type { Random } from "@quorate/host";
import { raftpb } from "@quorate/proto";
import type { TransportRequest } from "@quorate/server";
import type { PeerStatus, SnapshotStream } from "@quorate/transport";
import type { Safety } from "./check/safety.ts";
import { type Link, Links } from "./links.ts";
import type { SimOptions } from "./options.ts";
import { PeerPorts } from "./peer-ports.ts";
import { madeUpAnswers } from "./planted.ts";
import type { Story } from "./report/story.ts";
import type { Process, Scheduler } from "./scheduler.ts";
import { type Addresses, SimTransport, type Station } from "./sim-transport.ts";
import { carrySnapshot } from "./snapshot-ways.ts";

const TYPE_NAMES = new Map(
  Object.entries(raftpb.MessageType).map(([name, value]) => [value as number, name]),
);

export class Network {
  readonly #options: SimOptions;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #safety: Safety;
  readonly #story: Story;
  readonly #stations = new Map<bigint, Station>();
  readonly #transports = new Map<bigint, SimTransport>();
  readonly links: Links;
  /** What members ask each other at their peer URLs. */
  readonly ports: PeerPorts;
  messages = 0;
  snapshots = 0;
  #epoch = 0;

  constructor(
    options: SimOptions,
    deps: { scheduler: Scheduler; random: Random; safety: Safety; story: Story },
  ) {
    this.#options = options;
    this.#scheduler = deps.scheduler;
    this.#random = deps.random;
    this.#safety = deps.safety;
    this.#story = deps.story;
    this.links = new Links(options, deps);
    this.ports = new PeerPorts(this.links, deps.scheduler);
  }

  /** @param urls where the member listens: who dials another address does not reach it */
  open(
    name: string,
    process: Process,
    request: TransportRequest,
    urls: readonly string[],
  ): SimTransport {
    const station: Station = { name, process, request, urls, heard: new Map() };
    this.#stations.set(request.memberId, station);
    const transport = new SimTransport(this, station, this.#scheduler);
    this.#transports.set(request.memberId, transport);
    return transport;
  }

  /** Where the last process of a member dials its peers. */
  dialledBy(id: bigint): readonly PeerStatus[] {
    return this.#transports.get(id)?.peers() ?? [];
  }

  /** Nothing that is on its way arrives any more. */
  dropAll(): void {
    this.#epoch++;
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

  /** Whether a member could be talked to at this moment. */
  isReached(from: string, id: bigint, addresses: Addresses): boolean {
    const target = this.#at(id, addresses);
    return (
      target?.process.alive === true &&
      !this.links.link(from, target.name).cut &&
      !this.links.link(target.name, from).cut
    );
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
    this.#story.tell(
      from.name,
      () => `sends ${toName} ${text()}`,
      bytes,
      Number(to & 0x7fff_ffffn),
    );
    this.#safety.sent(from.name, message);
    for (const answer of madeUpAnswers(this.#options.bug, [message])) {
      this.#scheduler.after(0, () => from.request.listener.received([answer]), from.process);
    }
    if (target === undefined) return;
    const { loss, duplication } = this.#options;
    const link = this.links.link(from.name, toName);
    const isLost = link.cut || this.links.happens(loss);
    if (isLost || !target.process.alive) {
      if (this.#random.below(4) === 0)
        this.#scheduler.after(
          this.links.latencyMs(link),
          () => from.request.listener.unreachable(to),
          from.process,
        );
      return;
    }
    this.#deliver(link, from, to, bytes, text);
    if (type !== raftpb.MessageType.MsgProp && this.links.happens(duplication))
      this.#deliver(link, from, to, bytes, text);
  }

  #deliver(link: Link, from: Station, to: bigint, bytes: Uint8Array, text: () => string): void {
    const now = this.#scheduler.nowMs;
    const { reordering } = this.#options;
    let arrivalMs = now + this.links.latencyMs(link);
    if (this.links.happens(reordering))
      arrivalMs += this.#random.unit() * 20 * this.#options.latencyMs;
    else link.lastArrivalMs = arrivalMs = Math.max(arrivalMs, link.lastArrivalMs);
    const epoch = this.#epoch;
    const arrive = () => {
      if (epoch !== this.#epoch) return;
      const target = this.#stations.get(to);
      if (target === undefined || !target.process.alive) return;
      if (target.request.questions.isRemoved(from.request.memberId)) {
        const back = this.links.link(target.name, from.name);
        if (!back.cut)
          this.#scheduler.after(
            this.links.latencyMs(back),
            () => from.request.questions.selfRemoved(),
            from.process,
          );
        return;
      }
      if (this.#transports.get(to)?.takesFrom(from.request.memberId) !== true) return;
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

  /**
   * Streams a snapshot; resolves with whether the peer took it over, as far as the sender can know.
   */
  stream(from: Station, stream: SnapshotStream, addresses: Addresses): Promise<boolean> {
    const { message } = stream;
    this.snapshots++;
    this.#safety.sent(from.name, message);
    const target = this.#at(message.to, addresses);
    const announced = raftpb.Message.encode(message);
    this.#story.tell(
      from.name,
      `sends ${target?.name ?? "nobody"} a snapshot at ${message.snapshot?.metadata.index}`,
      announced,
    );
    if (target === undefined || !target.process.alive) return Promise.resolve(false);
    if (this.#transports.get(message.to)?.takesFrom(from.request.memberId) !== true)
      return Promise.resolve(false);
    const deps = {
      links: this.links,
      scheduler: this.#scheduler,
      story: this.#story,
      loss: this.#options.loss,
    };
    return carrySnapshot({ from, target, announced, body: stream.body }, deps);
  }
}
