/**
 * Clients: each asks one thing after the other of a member it likes, and writes down what it asked,
 * when, and what came back.
 */
import type { Random } from "@quorate/host";
import { CompactionRequest, defined, errorNameOf, KVService } from "@quorate/proto";
import { Actor, type ActorDeps } from "./base/actor.ts";
import { decodeAnswer, encodeRequest } from "./base/codec.ts";
import type { ModelOp, ModelRequest } from "./base/model.ts";
import {
  brief,
  type CompactionCall,
  type Operation,
  type Outcome,
  REFUSALS,
} from "./base/operation.ts";
import type { CorruptionCheck } from "./check/corruption.ts";
import type { LeaseCheck } from "./check/lease-lives.ts";
import type { Safety } from "./check/safety.ts";
import type { SpaceCheck } from "./check/space.ts";
import type { Reply } from "./exchanges.ts";
import type { Node } from "./node.ts";
import { wideRequest } from "./wide-requests.ts";

export interface ClientsDeps
  extends Pick<ActorDeps, "nodes" | "scheduler" | "story" | "random" | "network"> {
  readonly leaseCheck: LeaseCheck;
  readonly corruptionCheck: CorruptionCheck;
  readonly spaceCheck: SpaceCheck;
  readonly safety: Safety;
  /** What is asked in place of what a client would ask. */
  decorate(request: ModelRequest): ModelRequest;
}

export class Clients extends Actor<ClientsDeps> {
  readonly operations: Operation[] = [];
  readonly compactions: CompactionCall[] = [];
  #order = 0;
  #running = 0;
  /** What was seen last of each key, for comparisons that may hold. */
  readonly #lastMods = new Map<string, number>();
  /** The highest revision that any answer has had. */
  knownRevision = 1;
  /** Leases that are or were there, which puts may name. */
  readonly leases: string[] = [];

  /** Operations that were answered. */
  get answered(): number {
    return this.operations.filter((op) => op.outcome?.kind === "answered").length;
  }

  get idle(): boolean {
    return this.#running === 0;
  }

  start(): void {
    for (let i = 0; i < this.options.clients; i++) {
      this.#running++;
      this.#live(`c${i}`, this.deps.random.fork(`client ${i}`)).finally(() => {
        this.#running--;
      });
    }
  }

  async #live(name: string, random: Random): Promise<void> {
    const { nodes, scheduler } = this.deps;
    let favourite = nodes[random.below(nodes.length)];
    for (let i = 0; !this.isStopped; i++) {
      await scheduler.delay(-Math.log(1 - random.unit()) * this.options.thinkMs);
      if (this.isStopped) return;
      const went = await this.#step(name, random, favourite, i);
      if (!went || random.below(50) === 0) favourite = nodes[random.below(nodes.length)];
    }
  }

  async #step(name: string, random: Random, node: Node, i: number): Promise<boolean> {
    const { reads, puts, deletes, txns, compactions, serializableShare, leasedShare } =
      this.options;
    if (this.options.wholeApi && random.below(2) === 0)
      return this.#wideStep(name, random, node, i);
    let at = random.unit() * (reads + puts + deletes + txns + compactions);
    if ((at -= compactions) < 0)
      return this.compact(
        name,
        node,
        Math.max(1, this.knownRevision - random.below(10)),
        random.below(2) === 0,
      );
    const mode = { serializable: false, atRevision: 0 };
    let request: ModelRequest;
    const lease = () => {
      if (this.leases.length === 0 || random.unit() >= leasedShare) return {};
      return { lease: this.leases[random.below(this.leases.length)] };
    };
    const value = () => `${name}.${i}.${"v".repeat(random.below(this.options.valueBytes + 1))}`;
    if ((at -= reads) < 0) {
      request = { kind: "range", ...this.#range(random) };
      mode.serializable = random.unit() < serializableShare;
      if (random.below(10) === 0)
        mode.atRevision = Math.max(1, this.knownRevision - random.below(20));
    } else if ((at -= puts) < 0)
      request = { kind: "put", key: this.#key(random), value: value(), ...lease() };
    else if ((at -= deletes) < 0) request = { kind: "delete", ...this.#range(random) };
    else request = this.#txn(random, value, lease);
    const op = await this.call(
      name,
      node,
      this.deps.decorate(request),
      mode,
      this.options.clientTimeoutMs,
    );
    return op.outcome?.kind === "answered";
  }

  /** A request that uses more of the API than those of `#step`. */
  async #wideStep(name: string, random: Random, node: Node, i: number): Promise<boolean> {
    const { keys, valueBytes, serializableShare, leasedShare } = this.options;
    const request = wideRequest(random, {
      keys,
      leasedShare,
      leases: this.leases,
      knownRevision: this.knownRevision,
      value: () => `${name}.${i}.${"\x00\xff".repeat(random.below(Math.min(valueBytes, 20) + 1))}`,
    });
    const isRead = request.kind === "range";
    const atRevision =
      isRead && random.below(4) === 0 ? Math.max(1, this.knownRevision - random.below(20)) : 0;
    // A transaction without operations is answered without asking the leader, as in etcd.
    const isEmpty = request.kind === "txn" && request.success.length + request.failure.length === 0;
    const mode = {
      serializable: isEmpty || (isRead && random.unit() < serializableShare),
      atRevision,
    };
    const asked = this.deps.decorate(request);
    const op = await this.call(name, node, asked, mode, this.options.clientTimeoutMs);
    return op.outcome?.kind === "answered";
  }

  #key(random: Random): string {
    return `k${String.fromCharCode(97 + random.below(this.options.keys))}`;
  }

  #range(random: Random): { key: string; end: string } {
    const key = this.#key(random);
    if (random.below(4) > 0) return { key, end: "" };
    return random.below(2) === 0 ? { key: "k", end: "l" } : { key, end: `${key}~` };
  }

  #txn(random: Random, value: () => string, lease: () => { lease?: string }): ModelRequest {
    const key = this.#key(random);
    const mod = this.#lastMods.get(key) ?? 0;
    const other = this.#key(random);
    const success: ModelOp[] = [{ kind: "put", key, value: value(), ...lease() }];
    if (other !== key && random.below(2) === 0) {
      success.push(
        random.below(2) === 0
          ? { kind: "put", key: other, value: value(), ...lease() }
          : { kind: "delete", key: other, end: "" },
      );
    }
    if (random.below(3) === 0) success.push({ kind: "range", key: "k", end: "l" });
    const failure: ModelOp[] =
      random.below(4) === 0
        ? [{ kind: "put", key: other, value: value() }]
        : [{ kind: "range", key, end: "" }];
    const compares = [
      { key, target: "mod", result: random.below(5) === 0 ? ">" : "=", operand: mod } as const,
    ];
    return { kind: "txn", compares, success, failure };
  }

  /** Asks a member for a compaction; it is in the history. */
  async compact(name: string, node: Node, revision: number, physical = true): Promise<boolean> {
    const call: CompactionCall = { revision, calledAt: this.#order++, answeredAt: undefined };
    this.compactions.push(call);
    this.deps.story.record(name, `asks ${node.name} to compact ${revision}`);
    const bytes = CompactionRequest.encode({ revision, physical });
    const reply = await this.deps.network.exchange(
      node,
      KVService.methods.Compact.path,
      bytes,
      this.options.clientTimeoutMs,
      name,
    );
    this.deps.story.record(name, `compact ${revision}: ${reply.error ?? "done"}`);
    if (reply.error === undefined) call.answeredAt = this.#order++;
    return reply.error === undefined;
  }

  /**
   * Asks a member; the operation is in the history. @param exchange how it is asked, if not by one
   * call
   */
  async call(
    client: string,
    node: Node,
    request: ModelRequest,
    mode: { serializable: boolean; atRevision: number },
    timeoutMs: number,
    exchange = (bytes: Uint8Array, path: string) =>
      this.deps.network.exchange(node, path, bytes, timeoutMs, client),
  ): Promise<Operation> {
    const { path, bytes } = encodeRequest(request, mode);
    const op: Operation = {
      client,
      request,
      ...mode,
      calledAt: this.#order++,
      returnedAt: undefined,
      outcome: undefined,
    };
    this.operations.push(op);
    this.deps.story.record(client, () => `asks ${node.name} ${brief(request)}`, bytes);
    const { isAltered, timesAltered } = node;
    const calledMs = this.deps.scheduler.nowMs;
    const space = this.deps.spaceCheck.before(node.member);
    const reply = await exchange(bytes, path);
    op.returnedAt = this.#order++;
    op.outcome = this.#outcome(request, reply);
    if (isAltered || node.timesAltered > timesAltered) this.#distrust(op, node, calledMs);
    const { outcome } = op;
    if (outcome.kind === "answered")
      this.deps.story.record(
        client,
        () => `has of ${node.name}: ${brief(outcome.answer)}`,
        reply.bytes,
      );
    else this.deps.story.record(client, `has of ${node.name}: ${outcome.kind} ${outcome.error}`);
    this.#learn(op);
    this.deps.spaceCheck.after(op, space, node.member);
    return op;
  }

  /** An answer of a member whose store was altered counts only where it is right. */
  #distrust(op: Operation, node: Node, calledMs: number): void {
    if (op.outcome?.kind !== "answered") return;
    const { corruptionCheck, safety } = this.deps;
    const { answer } = op.outcome;
    const state = safety.stateAt(op.atRevision > 0 ? op.atRevision : answer.revision);
    const isStrict =
      this.options.selfHeal && node.namedSinceMs !== undefined && node.namedSinceMs < calledMs;
    if (corruptionCheck.isRight(node.name, op.request, answer, state, isStrict)) return;
    op.outcome = { kind: "unknown", error: "of a member whose store was altered" };
  }

  #outcome(request: ModelRequest, { bytes, error, unsent }: Reply): Outcome {
    if (bytes !== undefined) return { kind: "answered", answer: decodeAnswer(request.kind, bytes) };
    const text = error ?? "";
    const isRefused = unsent === true || REFUSALS.has(errorNameOf(text) ?? "");
    return isRefused ? { kind: "refused", error: text } : { kind: "unknown", error: text };
  }

  #learn({ outcome, request }: Operation): void {
    if (
      outcome?.kind === "refused" &&
      request.kind === "put" &&
      errorNameOf(outcome.error) === "LeaseNotFound"
    ) {
      this.deps.leaseCheck.reportedGone(defined(request.lease, "the lease"));
    }
    if (outcome?.kind !== "answered") return;
    const { revision, answers } = outcome.answer;
    this.knownRevision = Math.max(this.knownRevision, revision);
    for (const one of answers)
      if (one.kind === "range") for (const { key, mod } of one.kvs) this.#lastMods.set(key, mod);
  }
}
