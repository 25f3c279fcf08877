/**
 * Reads that never go back (--experimental-serializable-ordering; etcd: client/v3/ordering): a
 * serializable read whose member is behind what a read has shown before is made again at the next
 * member.
 */
import { type Logger, sleep } from "@quorate/host";
import { fromUtf8, GrpcCode, KVService, RangeRequest, RangeResponse } from "@quorate/proto";
import { type CallContext, StatusError } from "@quorate/rpc";
import type { MethodRules, Upstream } from "../upstream/upstream.ts";

/** Rounds through all members, as in etcd. */
const MAX_ROUNDS = 5;

export class OrderedReads {
  readonly #upstream: Upstream;
  #revision = 0;

  constructor(upstream: Upstream) {
    this.#upstream = upstream;
  }

  /** The highest revision that a read has shown. */
  get revision(): number {
    return this.#revision;
  }

  /** Makes a read. Rejects with etcd's text if every member is behind. */
  async read(rules: MethodRules, request: Uint8Array, context: CallContext): Promise<Uint8Array> {
    const most = MAX_ROUNDS * this.#upstream.size;
    for (let attempt = 0; attempt < most && !context.cancelled; attempt++) {
      const { channel } = this.#upstream;
      const response = await this.#upstream.unary(rules, request, context);
      const revision = RangeResponse.decode(response).header?.revision ?? 0;
      if (revision >= this.#revision) {
        this.#revision = revision;
        return response;
      }
      this.#upstream.leave(channel);
    }
    throw new StatusError(
      GrpcCode.Unknown,
      "etcdclient: no cluster members have a revision higher than the previously received revision",
    );
  }
}

const RANGE = { path: KVService.methods.Range.path, isRepeatable: true };
const RETRY_MS = 1000;

/** Resolves when a linearizable read has succeeded, as etcd's proxy waits for one at its start. */
export async function recoverOrder(upstream: Upstream, logger: Logger): Promise<void> {
  const request = RangeRequest.encode({ key: fromUtf8("_"), keysOnly: true });
  while (!upstream.isClosed) {
    try {
      await upstream.call(RANGE, request, { metadata: [] });
      return;
    } catch (error) {
      const reason = (error as Error).message;
      logger.warn("ordering recovery failed, retrying in 1s", { error: reason });
      await sleep(upstream.clock, RETRY_MS);
    }
  }
}
