/**
 * Requests about leases besides granting and revoking them: the leader serves them here, any other
 * member forwards them to the leader over the peer port (etcd: EtcdServer.LeaseRenew,
 * LeaseTimeToLive and server/lease/leasehttp).
 */
import { type Clock, type HttpHandler, type HttpResponse, sleep } from "@quorate/host";
import {
  errorOf,
  LeaseKeepAliveResponse,
  LeaseTimeToLiveRequest,
  LeaseTimeToLiveResponse,
  leasepb,
  WireError,
} from "@quorate/proto";
import { mergeSort, STEP_KEYS, type Steps } from "@quorate/store";
import type { PeerCall } from "@quorate/transport";
import type { Authority } from "../identity/authority.ts";
import type { Caller } from "../identity/caller.ts";
import type { LeaderView } from "../loop/leader-view.ts";
import type { Reads } from "../loop/reads.ts";
import { MEMBER_SHARE } from "../reads/slice-task.ts";
import type { Slices } from "../reads/slices.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import type { LeaseBounds } from "./bounds.ts";
import type { CountedLease } from "./epoch.ts";
import { type LeaseKeeper, NotPrimaryError } from "./keeper.ts";
import { decodeInternal, encodeInternal, sortedKeys } from "./long-responses.ts";
import { answerBatch, idOfRenewal, RENEW_PATH, RETRY, RenewBatches } from "./renew-batches.ts";

const TIME_TO_LIVE_PATH = "/leases/internal";
/** A request that the leader could not serve is retried after this long. */
const RETRY_MS = 50;
/** How long the leader may take over a forwarded question (etcd: applyTimeout and its way). */
const CALL_TIMEOUT_MS = 2000;

export interface LeasesDeps {
  readonly clock: Clock;
  readonly keeper: LeaseKeeper;
  readonly call: PeerCall;
  /** How long a client's question may take. */
  readonly timeoutMs: number;
  readonly store: StoreRef;
  readonly slices: Slices;
  readonly leader: LeaderView;
  readonly reads: Reads;
  /** Users and roles. */
  readonly authority: Authority;
  readonly bounds: LeaseBounds;
}

/** A stream of keep-alives, which lasts as long as its client. */
export interface KeepAliveStream {
  fail(error: unknown): void;
}

export class Leases {
  /** Those that are open. Each has a stream of its connection, which are limited. */
  readonly streams: Set<KeepAliveStream> = new Set();
  readonly #deps: LeasesDeps;
  readonly #batches: RenewBatches;

  constructor(deps: LeasesDeps) {
    this.#deps = deps;
    const { clock, call, leader, bounds, store } = deps;
    const timeoutMs = CALL_TIMEOUT_MS;
    this.#batches = new RenewBatches({ clock, call, leader, bounds, store, timeoutMs });
  }

  /**
   * Renews a lease for a caller that may: its time in seconds, 0 if there is no such lease; at once
   * where nothing has to be waited for. Throws or rejects with EtcdError.
   */
  renew(caller: Caller, id: bigint): number | Promise<number> {
    const { authority, store } = this.#deps;
    if (store.current.auth.isEnabled) {
      const admission = authority.admit(caller, { kind: "leaseKeepAlive", request: id });
      if (admission instanceof Promise) return admission.then(() => this.#renew(id));
    }
    return this.#renew(id);
  }

  #renew(id: bigint): number | Promise<number> {
    const { keeper } = this.#deps;
    if (!keeper.isPrimary) return this.#renewSomewhere(id);
    const renewed = keeper.renew(id);
    if (typeof renewed === "number") return renewed;
    return renewed.catch((error: unknown) => {
      if (error instanceof NotPrimaryError) return this.#renewSomewhere(id);
      throw error;
    });
  }

  /** As LeaseKeeper.counted. */
  counted(id: bigint): CountedLease | undefined {
    return this.#deps.keeper.counted(id);
  }

  /**
   * Renews a lease that `counted` has found, at once and for any caller. False, with nothing done,
   * where permission is needed or something has to be waited for: it takes `renew`.
   */
  renewAgain(lease: CountedLease): boolean {
    const { store, keeper } = this.#deps;
    return !store.current.auth.isEnabled && keeper.renewAgain(lease);
  }

  #renewSomewhere(id: bigint): Promise<number> {
    return this.#retry(async () => {
      const seconds = await (this.#deps.leader.isLeader
        ? this.#deps.keeper.renew(id)
        : this.#batches.renew(id));
      return seconds === RETRY ? undefined : seconds;
    });
  }

  /**
   * What is left of a lease, with its keys if they are requested; undefined if there is no such
   * lease. The header has the revision alone, and is there only if this member leads. Rejects with
   * EtcdError.
   */
  timeToLive(request: LeaseTimeToLiveRequest): Promise<LeaseTimeToLiveResponse | undefined> {
    return this.#retry(async () => {
      if (this.#deps.leader.isLeader) return { found: await this.#localTimeToLive(request) };
      return this.#remoteTimeToLive(request);
    }).then(({ found }) => found);
  }

  /**
   * All leases, in steps: by expiry where it is counted, else by id. Those that come and go
   * meanwhile may be among them or not.
   */
  *list(): Steps<bigint[]> {
    const { keeper, store } = this.#deps;
    const rows: { readonly id: bigint; readonly expiryMs: number }[] = [];
    for (const { id } of store.current.lessor.all()) {
      rows.push({ id, expiryMs: keeper.expiryMs(id) ?? Number.POSITIVE_INFINITY });
      if (rows.length % STEP_KEYS === 0) yield;
    }
    const sorted = yield* mergeSort(rows, (a, b) =>
      a.expiryMs === b.expiryMs ? (a.id < b.id ? -1 : 1) : a.expiryMs - b.expiryMs,
    );
    const ids: bigint[] = [];
    for (const { id } of sorted) if (ids.push(id) % STEP_KEYS === 0) yield;
    return ids;
  }

  /**
   * Calls `ask` until it returns a value, or the time is up. A leader that has not taken over yet
   * is a reason to retry too.
   */
  async #retry<T>(ask: () => Promise<T | undefined>): Promise<T> {
    const { clock, timeoutMs } = this.#deps;
    const deadlineMs = clock.monotonicMs() + timeoutMs;
    for (;;) {
      try {
        const answer = await ask();
        if (answer !== undefined) return answer;
      } catch (error) {
        if (!(error instanceof NotPrimaryError)) throw error;
      }
      if (clock.monotonicMs() >= deadlineMs) {
        throw errorOf(
          this.#deps.leader.isLeader || this.#deps.leader.peerUrls() !== undefined
            ? "Timeout"
            : "NoLeader",
        );
      }
      await sleep(clock, RETRY_MS);
    }
  }

  async #localTimeToLive(
    request: LeaseTimeToLiveRequest,
  ): Promise<LeaseTimeToLiveResponse | undefined> {
    const { slices, reads } = this.#deps;
    await reads.wait();
    return slices.run(MEMBER_SHARE, () => this.#found(request));
  }

  *#found({ ID, keys }: LeaseTimeToLiveRequest): Steps<LeaseTimeToLiveResponse | undefined> {
    const { keeper, store } = this.#deps;
    const { lessor, mvcc } = store.current;
    const unsorted = keys ? yield* lessor.keysInSteps(ID) : [];
    // The keys are those of this moment, and so is the revision; what follows may take several
    // turns of the event loop.
    const remainingMs = keeper.remainingMs(ID);
    const lease = lessor.get(ID);
    if (remainingMs === undefined || lease === undefined) return undefined;
    const response = LeaseTimeToLiveResponse.create({
      header: { clusterId: 0n, memberId: 0n, revision: mvcc.currentRevision, raftTerm: 0 },
      ID,
      TTL: Math.trunc(remainingMs / 1000),
      grantedTTL: keeper.ttlOf(lease),
    });
    if (unsorted.length > 0) response.keys = yield* sortedKeys(unsorted);
    return response;
  }

  async #remoteTimeToLive(
    request: LeaseTimeToLiveRequest,
  ): Promise<{ found: LeaseTimeToLiveResponse | undefined } | undefined> {
    const body = leasepb.LeaseInternalRequest.encode({ LeaseTimeToLiveRequest: request });
    for (const url of this.#deps.leader.peerUrls() ?? []) {
      try {
        const answer = await this.#deps.call(url, TIME_TO_LIVE_PATH, body, CALL_TIMEOUT_MS);
        if (answer.status === 404) return { found: undefined };
        if (answer.status !== 200) continue;
        const found = await this.#deps.slices.run(MEMBER_SHARE, () => decodeInternal(answer.body));
        if (found?.ID === request.ID) return { found: { ...found, header: undefined } };
      } catch {
        // The next URL may do; else the caller retries.
      }
    }
    return undefined;
  }

  // --- The leader's side ---

  /** What the peer port answers to other members, by path. */
  peerEndpoints(): ReadonlyMap<string, HttpHandler> {
    return new Map<string, HttpHandler>([
      [RENEW_PATH, (request) => post(request.method, () => this.#answerRenewals(request.body))],
      [
        TIME_TO_LIVE_PATH,
        (request) => post(request.method, () => this.#answerTimeToLive(request.body)),
      ],
    ]);
  }

  async #answerRenewals(body: Uint8Array): Promise<HttpResponse> {
    const { keeper, store } = this.#deps;
    const renew = async (id: bigint): Promise<number> => {
      // One that is being revoked must not hold up the others of its batch.
      if (keeper.isExpiring(id)) return RETRY;
      try {
        return await keeper.renew(id);
      } catch {
        return RETRY;
      }
    };
    if (store.current.followsEtcd) {
      const ID = idOfRenewal(body);
      if (ID === undefined) return plain(400, "error unmarshalling request");
      const TTL = await renew(ID);
      if (TTL === RETRY)
        return plain(408, "waiting for node to catch up its applied index has timed out");
      if (TTL === 0) return plain(404, "lease not found");
      return binary(LeaseKeepAliveResponse.encode({ header: undefined, ID, TTL }));
    }
    const answer = await answerBatch(body, renew);
    return answer === undefined ? plain(400, "error unmarshalling request") : binary(answer);
  }

  async #answerTimeToLive(body: Uint8Array): Promise<HttpResponse> {
    try {
      const { LeaseTimeToLiveRequest: asked } = leasepb.LeaseInternalRequest.decode(body);
      const found = await this.#localTimeToLive(asked ?? LeaseTimeToLiveRequest.create());
      if (found === undefined) return plain(404, "lease not found");
      return binary(await this.#deps.slices.run(MEMBER_SHARE, () => encodeInternal(found)));
    } catch (error) {
      if (error instanceof WireError) return plain(400, "error unmarshalling request");
      return plain(500, (error as Error).message);
    }
  }
}

async function post(method: string, answer: () => Promise<HttpResponse>): Promise<HttpResponse> {
  return method === "POST" ? answer() : plain(405, "Method Not Allowed");
}

function plain(status: number, text: string): HttpResponse {
  return { status, headers: { "content-type": "text/plain; charset=utf-8" }, body: `${text}\n` };
}

function binary(body: Uint8Array): HttpResponse {
  return { status: 200, headers: { "content-type": "application/protobuf" }, body };
}
