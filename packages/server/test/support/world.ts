/**
 * Members in this process on one manual clock, with disks and a network in memory: everything of a
 * member but its sockets. Time moves only in `run` and `until`, so a test waits for nothing real
 * and runs the same each time.
 */
import { setImmediate as turn } from "node:timers/promises";
import { type Logger, type Names, type Random, SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock, MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import type { TransportRequest } from "@quorate/member";
import { Member, SERVER_VERSION } from "@quorate/member";
import type {
  AnswerLimits,
  ApplyLimits,
  FaultPoint,
  MemberTransport,
  Secrets,
  SliceLimits,
  WatchLimits,
} from "@quorate/member/testing";
import {
  type EtcdError,
  errorOf,
  fromUtf8,
  KeyValue,
  PutRequest,
  RangeRequest,
  RangeResponse,
  type raftpb,
  toUtf8,
} from "@quorate/proto";
import { type CallContext, joinMessage, LOCAL_CALL, type UnaryHandler } from "@quorate/rpc";
import { serviceTable } from "@quorate/services";
import type { PeerAnswer, PeerStatus, SnapshotStream, Transport } from "@quorate/transport";
import { directoryExpiry } from "@quorate/v2";
import { loadConfig } from "../../src/config/load.ts";
import type { ServerConfig } from "../../src/config/server-config.ts";
import { httpRouter } from "../../src/http/endpoints.ts";
import { peerEndpoints, versionOf } from "../../src/http/peer-endpoints.ts";
import { withTurns } from "./turns.ts";

/** Thrown at a fault point: the process is gone. */
export class Crash extends Error {}

export interface Node {
  readonly name: string;
  readonly disk: MemoryDisk;
  /** How long a sync of the disk takes. */
  syncMs: number;
  readonly keyspaces: MemoryKeyspaceOpener;
  /** How long a batch of the store takes to be written. */
  writeMs: number;
  member: Member | undefined;
  /** Where the next pass crashes, if set. */
  crashAt: FaultPoint | undefined;
  /** What `onEnd` was called with, if it was. */
  ended: { error: unknown } | undefined;
  request: TransportRequest | undefined;
  transport?: Transport | undefined;
  /**
   * Where its member is to be found, and what --initial-cluster and the like say; the flags of a
   * new cluster where there are none.
   */
  readonly peerUrl: string;
  flags: readonly string[];
  /** The version that it reports to others; its own if undefined. */
  serverVersion?: string | undefined;
  /** Whether it is of a cluster of members of etcd, whose rules it follows. */
  followsEtcd?: boolean | undefined;
  /** How its member's applying is cut into slices; as in production if undefined. */
  applyLimits?: ApplyLimits | undefined;
  /** In place of those of `plainSecrets`. */
  secrets?: Partial<Secrets> | undefined;
  /** Called at each fault point that its member passes. */
  passes?: ((point: FaultPoint) => void) | undefined;
}

/** Hashes that cost nothing and are not secret. */
export function plainSecrets(random: Random): Secrets {
  let made = 0;
  return {
    randomBytes: (length) => Uint8Array.from({ length }, () => random.below(256)),
    hasher: {
      hash: async (password) => `$2a$04$${made++} ${password}`,
      verify: async (password, hash) => hash.slice(hash.indexOf(" ") + 1) === password,
      close: () => {},
    },
    threads: 1,
  };
}

/** The network: who is cut off hears and says nothing. */
class MemoryTransport implements MemberTransport {
  readonly #world: World;
  readonly #selfId: bigint;
  readonly #opened: () => void;
  readonly #peers = new Map<bigint, readonly string[]>();
  #closed = false;

  /** @param opened called when it listens */
  constructor(world: World, selfId: bigint, opened: () => void) {
    this.#world = world;
    this.#selfId = selfId;
    this.#opened = opened;
  }

  #target(id: bigint): Node | undefined {
    if (
      this.#closed ||
      !this.#peers.has(id) ||
      this.#world.cutOff.has(this.#selfId) ||
      this.#world.cutOff.has(id)
    )
      return undefined;
    return this.#world.nodes.find(
      (node) => node.member !== undefined && node.request?.memberId === id,
    );
  }

  send(messages: readonly raftpb.Message[]): void {
    for (const message of messages) {
      const copy = structuredClone(message);
      this.#world.clock.after(1, () =>
        this.#target(message.to)?.request?.listener.received([copy]),
      );
    }
  }

  sendSnapshot(stream: SnapshotStream): void {
    const { to } = stream.message;
    const self = this.#world.nodes.find((node) => node.request?.memberId === this.#selfId)!;
    const target = this.#target(to);
    const taken =
      target === undefined
        ? Promise.reject(new Error("not reachable"))
        : target.request!.listener.snapshotReceived({
            message: structuredClone(stream.message),
            body: stream.body,
          });
    taken.then(
      () => self.request?.listener.snapshotSent(to, true),
      () => self.request?.listener.snapshotSent(to, false),
    );
  }

  async listen(): Promise<void> {
    this.#opened();
  }

  addPeer(id: bigint, urls: readonly string[]): void {
    this.#peers.set(id, urls);
    this.#dial(id);
  }

  /** A peer that has applied this member's removal refuses the connection, and says why. */
  #dial(id: bigint): void {
    this.#world.clock.after(1, () => {
      if (this.#target(id)?.request?.questions.isRemoved(this.#selfId) !== true) return;
      this.#world.nodes
        .find((node) => node.request?.memberId === this.#selfId)
        ?.request?.questions.selfRemoved();
    });
  }

  updatePeer(id: bigint, urls: readonly string[]): void {
    this.#peers.set(id, urls);
  }

  removePeer(id: bigint): void {
    // The connection ends, and the peer dials again.
    const target = this.#target(id);
    this.#peers.delete(id);
    (target?.transport as MemoryTransport | undefined)?.redial(this.#selfId);
  }

  redial(id: bigint): void {
    if (this.#peers.has(id)) this.#dial(id);
  }

  peers(): readonly PeerStatus[] {
    return [...this.#peers].map(([id, urls]) => ({
      id,
      urls,
      activeSinceMs: this.#target(id) === undefined ? undefined : 0,
      roundTripMs: 1,
    }));
  }

  async close(): Promise<void> {
    this.#closed = true;
  }
}

export class World {
  readonly clock = new ManualClock();
  readonly random: SeededRandom;
  readonly nodes: Node[] = [];
  /** Members that no message reaches or leaves. */
  readonly cutOff = new Set<bigint>();
  /** Bounds of the members' reads; to be set before they start. */
  sliceLimits: SliceLimits | undefined;
  answerLimits: AnswerLimits | undefined;
  /** How long a turn of a member's event loop takes at the least. */
  turnMs = 0;
  /** The DNS responses, if there is a resolver. */
  names: Names | undefined;
  readonly #flags: readonly string[];
  readonly #watchLimits: WatchLimits | undefined;

  constructor(size: number, flags: readonly string[] = [], seed = 1n, watchLimits?: WatchLimits) {
    this.random = new SeededRandom(seed);
    this.#flags = flags;
    this.#watchLimits = watchLimits;
    for (let i = 0; i < size; i++) this.addNode([]);
    const cluster = this.nodes.map((node) => `${node.name}=${node.peerUrl}`).join(",");
    for (const node of this.nodes) node.flags = ["--initial-cluster", cluster];
  }

  /**
   * A machine more, with an empty disk. @param flags those that say which cluster its member
   * belongs to
   */
  addNode(flags: readonly string[]): Node {
    const i = this.nodes.length;
    const disk: MemoryDisk = new MemoryDisk({ clock: this.clock, syncDelayMs: () => node.syncMs });
    const keyspaces = new MemoryKeyspaceOpener(disk, {
      clock: this.clock,
      writeDelayMs: () => node.writeMs,
    });
    const peerUrl = `http://127.0.0.1:${12380 + 10 * i}`;
    const process = { member: undefined, crashAt: undefined, ended: undefined, request: undefined };
    const node: Node = {
      name: `m${i}`,
      disk,
      syncMs: 1,
      keyspaces,
      writeMs: 2,
      ...process,
      peerUrl,
      flags,
    };
    this.nodes.push(node);
    return node;
  }

  /** Asks the member at a peer URL, as another one, over the network in memory. */
  async callPeer(
    from: Node,
    url: string,
    path: string,
    body: Uint8Array | undefined,
  ): Promise<PeerAnswer> {
    const isAt = ({ member, peerUrl }: Node) =>
      peerUrl === url || member?.store.membership.member(member.id)?.peerUrls.includes(url);
    const target = this.nodes.find((node) => node.member !== undefined && isAt(node));
    const isCut = (node: Node | undefined) =>
      node?.request !== undefined && this.cutOff.has(node.request.memberId);
    await new Promise<void>((resolve) => this.clock.after(1, resolve));
    if (target?.member === undefined || isCut(target) || isCut(from))
      throw new Error("not reachable");
    const version = {
      ...versionOf(target.member),
      serverVersion: target.serverVersion ?? SERVER_VERSION,
    };
    const method = body === undefined ? "GET" : "POST";
    const sent = {
      method,
      path,
      query: "",
      headers: new Map<string, string>(),
      body: body ?? new Uint8Array(0),
    };
    const request = { ...sent, peerAddress: "", peerCommonName: undefined };
    const answer = await httpRouter(peerEndpoints(target.member, version))(request);
    await new Promise<void>((resolve) => this.clock.after(1, resolve));
    if (isCut(target) || isCut(from)) throw new Error("not reachable");
    const clusterId = answer.headers?.["x-etcd-cluster-id"];
    return {
      status: answer.status,
      body: typeof answer.body === "string" ? fromUtf8(answer.body) : answer.body,
      clusterId,
    };
  }

  async config(node: Node): Promise<ServerConfig> {
    const invocation = await loadConfig(
      [
        "--name",
        node.name,
        "--data-dir",
        "/data",
        ...node.flags,
        "--listen-peer-urls",
        node.peerUrl,
        "--initial-advertise-peer-urls",
        node.peerUrl,
        ...this.#flags,
      ],
      {},
      () => "",
    );
    if (invocation.kind !== "run") throw new Error("the flags start no member");
    return invocation.config;
  }

  async start(node: Node, logger: Logger = silentLogger): Promise<Member> {
    node.ended = undefined;
    const { clock, turnMs } = this;
    const starting = Member.start(await this.config(node), {
      clock: turnMs === 0 ? clock : withTurns(clock, turnMs),
      random: this.random.fork(node.name),
      disk: node.disk,
      keyspaces: node.keyspaces,
      logger,
      applyLimits: node.applyLimits,
      followsEtcd: node.followsEtcd,
      faults: (point) => {
        node.passes?.(point);
        if (node.crashAt !== point) return;
        node.crashAt = undefined;
        throw new Crash(point);
      },
      makeTransport: (request) => {
        const transport = new MemoryTransport(this, request.memberId, () => {
          node.request = request;
          node.transport = transport;
        });
        return transport;
      },
      callPeer: (url, path, body) => this.callPeer(node, url, path, body),
      names: this.names,
      beforeRevoke: directoryExpiry,
      secrets: { ...plainSecrets(this.random.fork(`${node.name}/secrets`)), ...node.secrets },
      watchLimits: this.#watchLimits,
      sliceLimits: this.sliceLimits,
      answerLimits: this.answerLimits,
      onEnd: (error) => {
        node.ended = { error };
        node.member = undefined;
      },
    });
    node.member = await this.settled(starting);
    return node.member;
  }

  async startAll(): Promise<void> {
    for (const node of this.nodes) await this.start(node);
    await this.until(() => this.leader() !== undefined);
    await this.settled(Promise.all(this.nodes.map((node) => node.member!.ready)));
  }

  /**
   * The node that leads by its own account and by that of a majority of the voters that it knows.
   */
  leader(): Node | undefined {
    return this.nodes.find(({ member }) => {
      if (member?.isLeader !== true) return false;
      const voters = member.store.membership.members().filter((one) => !one.isLearner);
      const followers = this.nodes.filter(
        (other) =>
          voters.some(({ id }) => id === other.member?.id) && other.member?.leader === member.id,
      );
      return followers.length > voters.length / 2;
    });
  }

  /** Moves time on by `ms`, in steps of one, letting each step's promises run. */
  async run(ms: number): Promise<void> {
    for (let i = 0; i < ms; i++) {
      this.clock.advance(1);
      await turn();
    }
  }

  /** Moves time on until `done`; fails after a minute of it. */
  async until(done: () => boolean): Promise<void> {
    for (let i = 0; !done(); i++) {
      if (i > 60_000) throw new Error(`waited a minute in vain for ${done}`);
      await this.run(1);
    }
  }

  /** The result of a promise that needs time to go on. */
  async settled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const mark = () => {
      isSettled = true;
    };
    promise.then(mark, mark);
    await this.until(() => isSettled);
    return promise;
  }

  async stopAll(): Promise<void> {
    for (const node of this.nodes) {
      if (node.member !== undefined) await this.settled(node.member.stop());
      node.member = undefined;
    }
  }
}

/** Calls a unary method of a member's services with request bytes, as an engine would. */
export async function call(
  member: Member,
  path: string,
  request: Uint8Array,
  metadata: Record<string, string> = {},
  context: Partial<CallContext> = {},
): Promise<Uint8Array> {
  const handler: UnaryHandler | undefined = serviceTable(member).unary.get(path);
  if (handler === undefined) throw new Error(`no method ${path}`);
  const answer = await handler(request, {
    ...LOCAL_CALL,
    path,
    metadata: (key) => metadata[key],
    ...context,
  });
  return joinMessage(answer);
}

export function put(member: Member, key: string, value: string): Promise<Uint8Array> {
  return call(
    member,
    "/etcdserverpb.KV/Put",
    PutRequest.encode({ key: fromUtf8(key), value: fromUtf8(value) }),
  );
}

/** The value of a key, undefined if it has none. */
export async function get(
  member: Member,
  key: string,
  serializable = false,
): Promise<string | undefined> {
  const answer = RangeResponse.decode(
    await call(
      member,
      "/etcdserverpb.KV/Range",
      RangeRequest.encode({ key: fromUtf8(key), serializable }),
    ),
  );
  return answer.kvs[0] === undefined ? undefined : toUtf8(KeyValue.decode(answer.kvs[0]).value);
}

/** The text of an etcd error by its name. */
export function textOf(name: EtcdError["code"]): string {
  return errorOf(name).message;
}
