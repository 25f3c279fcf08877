/**
 * Clients that hurt: malformed requests to every method, requests that are as heavy as the limits
 * allow, and members of the release before this one, which put malformed requests into the log
 * unchecked.
 *
 *   SIM-12 what is malformed   no request that does not decode is answered but by an error, and no
 *                              entry is in the log that fails its
 *                              checks, unless it was put there on purpose: then it comes to an
 *                              error on every member (SIM-4, SIM-5),
 *                              and all go on
 */
import {
  Compare_CompareResult,
  Compare_CompareTarget,
  fromLatin1,
  InternalRaftRequest,
  KVService,
  type MethodDescriptor,
  RangeRequest,
  type RequestOp,
  services,
  TxnRequest,
} from "@quorate/proto";
import { Actor, type ActorDeps } from "./base/actor.ts";
import type { ModelOp } from "./base/model.ts";
import { violate } from "./base/violation.ts";
import type { Safety } from "./check/safety.ts";
import type { Clients } from "./clients.ts";
import type { Node } from "./node.ts";

const METHODS: readonly MethodDescriptor[] = services.flatMap((service) =>
  Object.values(service.methods),
);
const ALL = { key: fromLatin1("\0"), rangeEnd: fromLatin1("\0") };
const CALL_TIMEOUT_MS = 2000;
/**
 * A stream that has taken a malformed message is closed after so long, should the member not do it.
 */
const STREAM_MS = 300;
/**
 * Ranges and comparisons of a heavy transaction: as many as --max-txn-ops allows; fewer where reads
 * take many small steps, of which each is an event.
 */
const HEAVY_OPS = 128;
const HEAVY_OPS_IN_STEPS = 16;

/**
 * Ends that make any message malformed, whatever stands before: a varint, a length, a tag and a
 * group that do not end.
 */
const BROKEN_ENDS: readonly (readonly number[])[] = [
  [0x08],
  [0x0a, 0x7f],
  [0xff, 0xff],
  [0x0b],
  [0x08, ...new Array<number>(10).fill(0xff), 1],
];

/**
 * Kinds of requests that are put into the log malformed. No alarm of a full store comes before
 * their being malformed.
 */
const POISONED = ["leaseRevoke", "leaseCheckpoint", "compaction", "alarm", "deleteRange"] as const;

export interface HostileClientsDeps extends ActorDeps {
  readonly clients: Clients;
  readonly safety: Safety;
}

export class HostileClients extends Actor<HostileClientsDeps> {
  readonly counts = { malformed: 0, heavy: 0, poisoned: 0, forwarded: 0 };

  start(): void {
    const { hostileEveryMs, poisonEveryMs } = this.options;
    if (hostileEveryMs > 0) this.#repeat(hostileEveryMs, () => this.#hurt());
    if (poisonEveryMs > 0) this.#repeat(poisonEveryMs, async () => this.#poison());
  }

  #repeat(everyMs: number, work: () => Promise<void>): void {
    const loop = async () => {
      while (!this.isStopped) {
        await this.deps.scheduler.delay(-Math.log(1 - this.random.unit()) * everyMs);
        if (!this.isStopped) await work();
      }
    };
    loop().catch((error: unknown) => this.deps.fail(error));
  }

  #hurt(): Promise<void> {
    const { nodes } = this.deps;
    const node = nodes[this.random.below(nodes.length)];
    const what = this.random.below(8);
    if (what === 0) return this.#heavyRead(node);
    if (what === 1) return this.#heavyWrite(node);
    return this.#malformed(node);
  }

  /** Bytes that are no message. */
  #broken(): Uint8Array {
    const random = this.random;
    const before = Array.from({ length: random.below(3) }, () => [0x0a, 1, 0x6b]).flat();
    return Uint8Array.from([...before, ...BROKEN_ENDS[random.below(BROKEN_ENDS.length)]]);
  }

  async #malformed(node: Node): Promise<void> {
    const { network, scheduler, story } = this.deps;
    const method = METHODS[this.random.below(METHODS.length)];
    const bytes = this.#broken();
    this.counts.malformed++;
    story.record("hostile", () => `sends ${node.name} a malformed ${method.path}`, bytes);
    if (method.requestStream || method.responseStream) {
      const stream = network.open(node, method.path, { message: () => {}, ended: () => {} });
      stream.send(bytes);
      await scheduler.delay(STREAM_MS);
      stream.close();
      return;
    }
    const reply = await network.exchange(node, method.path, bytes, CALL_TIMEOUT_MS);
    story.record("hostile", () => `has of ${node.name}: ${reply.error ?? "an answer"}`);
    if (reply.bytes !== undefined)
      violate("SIM-12", `${node.name} answers a malformed ${method.path}`);
  }

  /**
   * A sort of everything, or a transaction of as many ranges and comparisons as are taken. Nothing
   * is changed by it.
   */
  async #heavyRead(node: Node): Promise<void> {
    const random = this.random;
    this.counts.heavy++;
    const { Range, Txn } = KVService.methods;
    const sorted = { sortOrder: (1 + random.below(2)) as 1 | 2, sortTarget: random.below(5) as 0 };
    const request = RangeRequest.create({ ...ALL, ...sorted, limit: random.below(3) });
    if (random.below(2) === 0) {
      await this.deps.network.exchange(
        node,
        Range.path,
        RangeRequest.encode(request),
        CALL_TIMEOUT_MS,
      );
      return;
    }
    const range: RequestOp = { request: { case: "requestRange", value: request } };
    const compare = {
      ...ALL,
      result: Compare_CompareResult.GREATER,
      target: Compare_CompareTarget.VALUE,
      targetUnion: undefined,
    };
    const length = this.options.readSteps === 0 ? HEAVY_OPS : HEAVY_OPS_IN_STEPS;
    const bytes = TxnRequest.encode({
      compare: Array.from({ length }, () => compare),
      success: Array.from({ length }, () => range),
      failure: Array.from({ length }, () => range),
    });
    await this.deps.network.exchange(node, Txn.path, bytes, CALL_TIMEOUT_MS);
  }

  /**
   * All keys in one transaction, on one lease where there is one; or all of them deleted. It is in
   * the history.
   */
  async #heavyWrite(node: Node): Promise<void> {
    const { clients } = this.deps;
    const random = this.random;
    this.counts.heavy++;
    const mode = { serializable: false, atRevision: 0 };
    if (random.below(3) === 0) {
      await clients.call(
        "hostile",
        node,
        { kind: "delete", key: "k", end: "l" },
        mode,
        CALL_TIMEOUT_MS,
      );
      return;
    }
    const lease =
      clients.leases.length === 0
        ? {}
        : { lease: clients.leases[random.below(clients.leases.length)] };
    const value = `hostile.${this.counts.heavy}`;
    const success = Array.from({ length: this.options.keys }, (_, i): ModelOp => {
      return { kind: "put", key: `k${String.fromCharCode(97 + i)}`, value, ...lease };
    });
    await clients.call(
      "hostile",
      node,
      { kind: "txn", compares: [], success, failure: [] },
      mode,
      CALL_TIMEOUT_MS,
    );
  }

  /**
   * A member of the release before this one: what it is asked goes out as it came. Where it leads,
   * that is into the log; what it forwards to another leader is refused there.
   */
  #poison(): void {
    const { nodes, safety, story } = this.deps;
    const random = this.random;
    const node = nodes[random.below(nodes.length)];
    const { raft } = node;
    if (raft === undefined) return;
    const kind = POISONED[random.below(POISONED.length)];
    const prefix = (raft.status().id & 0xffffn) << 48n;
    const header = { ID: prefix | (random.uint64() >> 16n), username: "", authRevision: 0 };
    const whole = InternalRaftRequest.encode({ header, [kind]: this.#broken() });
    // The envelope too, now and then.
    const data = random.below(4) === 0 ? whole.subarray(0, whole.length - 1) : whole;
    const leads = raft.role === "leader";
    if (leads) safety.poison(data);
    story.record("hostile", () => `has ${node.name} propose a malformed ${kind} unchecked`, data);
    if (raft.propose([data]) === "accepted") this.counts[leads ? "poisoned" : "forwarded"]++;
  }
}
