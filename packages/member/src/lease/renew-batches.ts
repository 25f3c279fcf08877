/**
 * Renewals on their way from a member to the leader. All that wait when a turn ends go in one
 * request over the peer port:
 *
 *     POST /leases     lease ids, 8 bytes big-endian each  ->  seconds, 8 bytes big-endian each; 0:
 *                                                              no such lease; -1: retry
 *
 * In a cluster that has or had members of etcd, each goes by itself, in etcd's form (etcd:
 * server/lease/leasehttp):
 *
 *     POST /leases     LeaseKeepAliveRequest  ->  200 LeaseKeepAliveResponse; 404: no such lease
 */
import type { Clock } from "@quorate/host";
import { errorOf, LeaseKeepAliveRequest, LeaseKeepAliveResponse, WireError } from "@quorate/proto";
import type { PeerCall } from "@quorate/transport";
import type { LeaderView } from "../loop/leader-view.ts";
import { type LeaseBounds, MAX_BATCH_LEASES } from "./bounds.ts";

export const RENEW_PATH = "/leases";
/**
 * The answer where the leader could not say at once: it has just changed, or the lease is being
 * revoked.
 */
export const RETRY = -1;
const WORD_BYTES = 8;

interface Waiting {
  readonly id: bigint;
  readonly resolve: (seconds: number) => void;
}

export interface RenewBatchesDeps {
  readonly clock: Clock;
  readonly call: PeerCall;
  readonly leader: Pick<LeaderView, "peerUrls">;
  readonly store: { readonly current: { readonly followsEtcd: boolean } };
  readonly timeoutMs: number;
  readonly bounds: LeaseBounds;
}

export class RenewBatches {
  readonly #deps: RenewBatchesDeps;
  #waiting: Waiting[] = [];
  #inflight = 0;
  #isTurnSet = false;

  constructor(deps: RenewBatchesDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves with the leader's answer, RETRY included: also where the request or its answer was
   * lost. @throws EtcdError TooManyRequests
   */
  renew(id: bigint): Promise<number> {
    if (this.#waiting.length >= this.#deps.bounds.maxWaitingRenewals)
      throw errorOf("TooManyRequests");
    return new Promise((resolve) => {
      this.#waiting.push({ id, resolve });
      if (this.#isTurnSet) return;
      this.#isTurnSet = true;
      this.#deps.clock.endOfTurn(() => {
        this.#isTurnSet = false;
        this.#sendAll();
      });
    });
  }

  #sendAll(): void {
    const { maxBatchLeases, maxInflightBatches } = this.#deps.bounds;
    while (this.#waiting.length > 0 && this.#inflight < maxInflightBatches) {
      const batch = this.#waiting.splice(0, maxBatchLeases);
      this.#inflight++;
      this.#send(batch).then((answers) => {
        this.#inflight--;
        batch.forEach(({ resolve }, i) => {
          resolve(answers?.[i] ?? RETRY);
        });
        this.#sendAll();
      });
    }
  }

  async #sendOne(id: bigint): Promise<number> {
    const body = LeaseKeepAliveRequest.encode({ ID: id });
    for (const url of this.#deps.leader.peerUrls() ?? []) {
      try {
        const answer = await this.#deps.call(url, RENEW_PATH, body, this.#deps.timeoutMs);
        if (answer.status === 404) return 0;
        if (answer.status === 200) return LeaseKeepAliveResponse.decode(answer.body).TTL;
      } catch {
        // The next URL may do; else the waiting callers retry.
      }
    }
    return RETRY;
  }

  async #send(batch: readonly Waiting[]): Promise<number[] | undefined> {
    if (this.#deps.store.current.followsEtcd)
      return Promise.all(batch.map(({ id }) => this.#sendOne(id)));
    const body = encodeWords(batch.map(({ id }) => id));
    for (const url of this.#deps.leader.peerUrls() ?? []) {
      try {
        const answer = await this.#deps.call(url, RENEW_PATH, body, this.#deps.timeoutMs);
        const words = answer.status === 200 ? decodeWords(answer.body) : undefined;
        if (words?.length === batch.length) return words.map(Number);
      } catch {
        // The next URL may do; else the waiting callers retry.
      }
    }
    return undefined;
  }
}

/** The id in a request of etcd's form; undefined for a body that is none. */
export function idOfRenewal(body: Uint8Array): bigint | undefined {
  try {
    return LeaseKeepAliveRequest.decode(body).ID;
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}

/** Answers a batch by `renew`. Undefined for a body that is no batch. */
export async function answerBatch(
  body: Uint8Array,
  renew: (id: bigint) => Promise<number>,
): Promise<Uint8Array | undefined> {
  const ids = decodeWords(body);
  if (ids === undefined || ids.length > MAX_BATCH_LEASES) return undefined;
  return encodeWords((await Promise.all(ids.map(renew))).map(BigInt));
}

function encodeWords(words: readonly bigint[]): Uint8Array {
  const bytes = new Uint8Array(words.length * WORD_BYTES);
  const view = new DataView(bytes.buffer);
  words.forEach((word, i) => {
    view.setBigInt64(i * WORD_BYTES, word);
  });
  return bytes;
}

function decodeWords(bytes: Uint8Array): bigint[] | undefined {
  if (bytes.length % WORD_BYTES !== 0) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / WORD_BYTES }, (_, i) =>
    view.getBigInt64(i * WORD_BYTES),
  );
}
