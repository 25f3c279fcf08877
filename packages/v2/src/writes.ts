/**
 * Writes of the v2 API: plan, propose, and plan again where something came in between.
 *
 *     plan -> one Txn in the log -> applied: the response
 *                                -> its comparisons failed: the next plan, in the key's chain
 *          -> an error: looked at once more when all that was committed is applied here
 */

import type { Member } from "@quorate/member";
import { callerOf, MEMBER_CALLER } from "@quorate/member";
import {
  defined,
  EMPTY,
  KVService,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  LeaseService,
  TxnRequest,
  type TxnResponse,
} from "@quorate/proto";
import { StatusError } from "@quorate/rpc";
import { runSteps } from "@quorate/store";
import type { HttpCaller } from "./calls.ts";
import { type Begun, type Chainable, Chains } from "./chains.ts";
import { V2Error } from "./errors.ts";
import type { KeyRequest } from "./key-request.ts";
import { pathText, subtree } from "./keys.ts";
import { eventJson, type NodeView, viewOf } from "./node-json.ts";
import { chainOf, isNotEmpty, Planner, planBehind, writtenRange } from "./plan.ts";
import type { Expiry, Plan, Tail } from "./plan-parts.ts";
import { decodeNode, type NodeRecord } from "./record.ts";
import { put } from "./txn-parts.ts";

/** Plans for one request. In a key's chain only other members come in between. */
export const MAX_PLANS = 32;
/** Plans of one request behind others; further ones are made while nothing is on its way. */
const MAX_CHAINED_PLANS = 2;
/** Leases below a deleted directory that are revoked; others end by themselves. */
export const MAX_REVOKED_LEASES = 1000;
/** Keys that are looked through for them. */
const MAX_LEASE_KEYS = 10_000;

/** What a write came to. */
export interface Written {
  readonly isCreated: boolean;
  /** The revision of the write. */
  readonly index: number;
  readonly body: string;
}

export class Writes {
  readonly #member: Member;
  readonly #chains = new Chains<Written, Tail>();

  constructor(member: Member) {
    this.#member = member;
  }

  /**
   * Does what a request asks.
   * @returns a promise of the response. Rejects with V2Error, or StatusError of a call
   */
  async write(caller: HttpCaller, request: KeyRequest): Promise<Written> {
    const chain = chainOf(request);
    const write = new Write(this.#member, caller, request, chain !== undefined);
    try {
      const first = chain === undefined ? await write.attempt() : await write.prepare();
      if (first !== undefined) return first;
      if (this.#chains.isFull) throw new V2Error("RaftInternal", "too many writes are waiting");
      return await this.#chains.run(chain ?? pathText(request.path), write);
    } catch (error) {
      write.abandon();
      throw error;
    }
  }
}

/** One write, through its plans. */
class Write implements Chainable<Written, Tail> {
  readonly #member: Member;
  readonly #caller: HttpCaller;
  readonly #request: KeyRequest;
  readonly #isChained: boolean;
  #expiry: Expiry | undefined;
  /** All that was committed when the request came is applied here. */
  #isCurrent = false;
  #plans = 0;

  /** @param isChained it may be planned behind writes that are on their way */
  constructor(member: Member, caller: HttpCaller, request: KeyRequest, isChained: boolean) {
    this.#member = member;
    this.#caller = caller;
    this.#request = request;
    this.#isChained = isChained;
  }

  get isAlone(): boolean {
    return !this.#isChained || this.#plans >= MAX_CHAINED_PLANS;
  }

  /** Makes the lease of a write that begins in its chain, where nothing can be waited for. */
  async prepare(): Promise<undefined> {
    if (!this.#member.isServable) await this.#current();
    if (this.#request.ttlSeconds !== undefined) await this.#plan();
  }

  begin(tail: Tail | undefined): Begun<Written, Tail> | undefined {
    if (this.#plans >= MAX_PLANS) {
      const reason = "too many concurrent changes of the key";
      throw new V2Error("RaftInternal", reason, this.#member.store.mvcc.currentRevision);
    }
    const { mvcc } = this.#member.store;
    if (tail !== undefined) {
      if (!this.#isChained) return undefined;
      const plan = planBehind(mvcc, this.#request, this.#expiry, tail);
      // What would fail behind the tail is judged by what is applied.
      if (plan === undefined) return { done: this.attempt(), tail: "beside" };
      return { done: this.#run(plan), tail: plan.tail };
    }
    if (!this.#isChained) return { done: this.attempt(), tail: undefined };
    let plan: Plan;
    try {
      plan = new Planner(mvcc).plan(this.#request, this.#expiry);
    } catch (error) {
      if (!(error instanceof V2Error)) throw error;
      return { done: this.attempt(), tail: "beside" };
    }
    return { done: this.#run(plan), tail: plan.tail };
  }

  /** Undefined: something came in between. */
  async attempt(): Promise<Written | undefined> {
    if (!this.#member.isServable) await this.#current();
    const plan = await this.#plan();
    return this.#run(plan);
  }

  async #run(plan: Plan): Promise<Written | undefined> {
    this.#plans++;
    const leases = this.#leasesBelow(plan);
    const response = await this.#transact(plan);
    if (!response.succeeded) {
      // This member has applied the transaction: what came before it can be seen now.
      this.#isCurrent = true;
      if (isNotEmpty(plan, countsOf(response))) {
        const { path } = this.#request;
        throw new V2Error(
          "DirNotEmpty",
          pathText(path),
          defined(response.header, "the header").revision,
        );
      }
      return undefined;
    }
    return this.#written(plan, response, leases);
  }

  /** A full store still takes deletions; their notes are puts, and are left out then. */
  async #transact({ compare, success, failure, node }: Plan): Promise<TxnResponse> {
    const { Txn } = KVService.methods;
    const request = { compare: [...compare], success: [...success], failure: [...failure] };
    try {
      return await this.#caller.call(Txn, request);
    } catch (error) {
      const isFull = error instanceof StatusError && /space exceeded/.test(error.message);
      const deletions = success.filter((op) => op.request?.case === "requestDeleteRange");
      if (!isFull || node !== undefined || deletions.length === success.length) throw error;
      return this.#caller.call(Txn, { ...request, success: deletions });
    }
  }

  /** The lease that was made for nothing. */
  abandon(): void {
    if (this.#expiry !== undefined) this.#revoke([this.#expiry.lease]);
  }

  async #current(): Promise<void> {
    await this.#member.current();
    this.#isCurrent = true;
  }

  /** A plan with its lease. @throws V2Error */
  async #plan(): Promise<Plan> {
    const { ttlSeconds } = this.#request;
    try {
      const plan = new Planner(this.#member.store.mvcc).plan(this.#request, this.#expiry);
      if (ttlSeconds === undefined || this.#expiry !== undefined) return plan;
    } catch (error) {
      if (!(error instanceof V2Error)) throw error;
      if (this.#isCurrent) {
        await this.#permitted();
        throw error;
      }
      await this.#current();
      return this.#plan();
    }
    this.#expiry = await this.#grant(ttlSeconds);
    return this.#plan();
  }

  /**
   * An error says something about the keys, a failed comparison even a value: only to a caller that
   * may write there, and read, as its transaction would need.
   */
  async #permitted(): Promise<void> {
    const { key } = writtenRange(this.#request.path);
    const request = TxnRequest.create({ success: [put(key, EMPTY, { prevKv: true })] });
    const caller = callerOf(this.#caller.context(KVService.methods.Txn.path));
    await this.#member.permit(caller, { kind: "txn", request });
  }

  async #grant(ttlSeconds: number): Promise<Expiry> {
    const { clock, minLeaseTtlSeconds } = this.#member;
    const expiresMs = Math.floor(clock.wallMs()) + ttlSeconds * 1000;
    const { ID } = await this.#caller.call(
      LeaseService.methods.LeaseGrant,
      LeaseGrantRequest.create({ TTL: Math.max(1, ttlSeconds, minLeaseTtlSeconds) }),
    );
    return { lease: ID, ttlSeconds, expiresMs };
  }

  #written(plan: Plan, response: TxnResponse, below: readonly bigint[]): Written {
    const index = defined(response.header, "the header").revision;
    const { action, path, node } = plan;
    const wallMs = this.#member.clock.wallMs();
    const before = plan.before === "response" ? previousOf(response) : plan.before;
    const leases = before === undefined || before.lease === 0n ? below : [before.lease, ...below];
    if (leases.length > 0) this.#revoke(leases);
    const isCreated = action === "create" || (action === "set" && before === undefined);
    const view: NodeView =
      node === undefined
        ? {
            path,
            modifiedIndex: index,
            createdIndex: defined(before, "the node before").createdIndex,
            isDir: action === "delete" && before?.isDir === true,
          }
        : {
            path,
            modifiedIndex: index,
            createdIndex: node.createdIndex ?? index,
            expiresMs: node.expiresMs,
            ttlSeconds: node.ttlSeconds,
            isDir: node.isDir,
            value: node.isDir ? undefined : node.value,
          };
    const isSilent = this.#request.noValueOnSuccess && node !== undefined;
    const prev = before === undefined ? undefined : viewOf(path, before, wallMs);
    const body = isSilent ? eventJson(action, undefined, undefined) : eventJson(action, view, prev);
    return { isCreated, index, body };
  }

  /** Leases of the nodes below a directory that a plan deletes, as many as are looked for. */
  #leasesBelow({ node, before, path }: Plan): bigint[] {
    if (node !== undefined || before === "response" || before?.isDir !== true) return [];
    const { mvcc, lessor } = this.#member.store;
    const leases = new Set<bigint>();
    const { key, rangeEnd } = subtree(path);
    let keys = 0;
    const range = { single: false as const, key, to: rangeEnd };
    runSteps(
      mvcc.view.each(range, mvcc.currentRevision, (name) => {
        const lease = lessor.leaseOf(name);
        if (lease !== 0n) leases.add(lease);
        return ++keys < MAX_LEASE_KEYS && leases.size < MAX_REVOKED_LEASES;
      }),
    );
    return [...leases];
  }

  /** Ends leases that no key has any more; one that cannot be ended now ends by itself. */
  #revoke(leases: readonly bigint[]): void {
    for (const ID of leases) {
      const { lessor } = this.#member.store;
      if (!lessor.exists(ID) || lessor.keysOf(ID).length > 0) continue;
      const request = LeaseRevokeRequest.encode({ ID });
      this.#member.propose(MEMBER_CALLER, "leaseRevoke", request).catch(() => {});
    }
  }
}

/** The node that the last put of a transaction replaced. */
function previousOf({ responses }: TxnResponse): NodeRecord | undefined {
  const last = responses.at(-1)?.response;
  const record = last?.case === "responsePut" ? last.value.prevKv : undefined;
  return record === undefined ? undefined : decodeNode(record);
}

function countsOf({ responses }: TxnResponse): number[] {
  return responses.map(({ response }) =>
    response?.case === "responseRange" ? response.value.count : 0,
  );
}
