/** ClusterClient over the client library, for a cluster of Quorate or of etcd. */
import {
  type Client,
  ClientError,
  compareModRevision,
  opDelete,
  opGet,
  opPut,
  type RequestOp,
  rangeParts,
  type TxnParts,
  type TxnResult,
  type Watch,
} from "@quorate/client";
import type { Clock } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import {
  type Cancellation,
  type ClusterClient,
  ClusterError,
  type ClusterEvent,
  type ClusterPart,
  type ClusterRange,
  type ClusterRangeOptions,
  type ClusterWatch,
  type ClusterWatchOptions,
  type ClusterWatchResponse,
  type ClusterWrite,
  type ClusterWriteOptions,
  throwIfAborted,
} from "@quorate/kube-storage";
import { defined, Event, Event_EventType, GrpcCode, KeyValue, RangeRequest } from "@quorate/proto";

/** Errors of reads, which are safe to repeat; a write may have happened, so its error stays. */
function readError(error: unknown): unknown {
  if (!(error instanceof ClientError)) return error;
  const { message } = error;
  if (error.code === "Compacted") return new ClusterError("Compacted", message, error);
  if (error.code === "FutureRev") return new ClusterError("FutureRevision", message, error);
  if (error.grpcCode === GrpcCode.Unavailable)
    return new ClusterError("Unavailable", message, error);
  if (error.grpcCode === GrpcCode.DeadlineExceeded)
    return new ClusterError("Timeout", message, error);
  return error;
}

function written(result: TxnResult): ClusterWrite {
  const [response] = result.responses;
  const present = response?.kind === "get" ? response.result.kvs[0] : undefined;
  return { succeeded: result.succeeded, revision: result.header.revision, present };
}

/** A cluster that has no streams of ranges is asked for one again after this time. */
const RECHECK_STREAMS_MS = 10 * 60_000;

/** The cluster of `client`, which the caller closes. */
export class LibraryCluster implements ClusterClient {
  readonly #client: Client;
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** Until then, ranges are read in pages. */
  #inPagesUntilMs: number;

  /** @param streams whether ranges are read as streams, where the cluster has that (etcd 3.7) */
  constructor(client: Client, streams = true, clock: Pick<Clock, "monotonicMs"> = nodeClock) {
    this.#client = client;
    this.#clock = clock;
    this.#inPagesUntilMs = streams ? 0 : Number.POSITIVE_INFINITY;
  }

  async range(key: Uint8Array, options: ClusterRangeOptions): Promise<ClusterRange> {
    const { end, revision, limit, only } = options;
    try {
      const { kvs, count, header } = await this.#client.get(key, {
        rangeEnd: end,
        revision,
        limit,
        keysOnly: only === "keys",
        countOnly: only === "count",
      });
      return { records: kvs, count, revision: header.revision };
    } catch (error) {
      throw readError(error);
    }
  }

  async *rangeParts(
    key: Uint8Array,
    { end, revision, limit }: ClusterRangeOptions,
    cancellation: Cancellation | undefined,
  ): AsyncGenerator<ClusterPart, undefined> {
    throwIfAborted(cancellation);
    const aborted = new AbortController();
    const abort = (): void => aborted.abort(cancellation?.reason);
    cancellation?.addEventListener("abort", abort);
    try {
      const request = RangeRequest.create({ key, rangeEnd: end, revision, limit });
      const parts = rangeParts(this.#client, request, {
        signal: aborted.signal,
        inPages: this.#clock.monotonicMs() < this.#inPagesUntilMs,
        noStreams: () => {
          this.#inPagesUntilMs = this.#clock.monotonicMs() + RECHECK_STREAMS_MS;
        },
      });
      for await (const { kvs, header, count } of parts)
        yield {
          records: kvs.map((kv) => KeyValue.decode(kv)),
          end: header && { count, revision: header.revision },
        };
    } catch (error) {
      throw readError(error);
    } finally {
      cancellation?.removeEventListener("abort", abort);
    }
  }

  async modRevisions(keys: readonly Uint8Array[]): Promise<readonly number[]> {
    try {
      const success = keys.map((key) => opGet(key, { keysOnly: true }));
      const { responses } = await this.#client.txn({ success });
      return responses.map((it) => (it.kind === "get" ? (it.result.kvs[0]?.modRevision ?? 0) : 0));
    } catch (error) {
      throw readError(error);
    }
  }

  async put(
    key: Uint8Array,
    value: Uint8Array,
    lease: bigint | "keep",
    options: ClusterWriteOptions,
  ): Promise<ClusterWrite> {
    const put = opPut(key, value, lease === "keep" ? { ignoreLease: true } : { lease });
    return written(await this.#client.txn(conditional(key, put, options)));
  }

  async delete(key: Uint8Array, options: ClusterWriteOptions): Promise<ClusterWrite> {
    return written(await this.#client.txn(conditional(key, opDelete(key), options)));
  }

  watch(key: Uint8Array, options: ClusterWatchOptions): ClusterWatch {
    return new LibraryWatch(
      this.#client.watch(key, {
        rangeEnd: options.end,
        revision: options.revision,
        progressNotify: options.progressNotify,
        prevKv: true,
      }),
    );
  }

  async grantLease(ttlSeconds: number): Promise<bigint> {
    return (await this.#client.leases.grant(ttlSeconds)).ID;
  }

  async compact(revision: number): Promise<void> {
    try {
      await this.#client.compact(revision);
    } catch (error) {
      // Another server was faster.
      if (!(error instanceof ClientError) || error.code !== "Compacted") throw error;
    }
  }
}

function conditional(
  key: Uint8Array,
  write: RequestOp,
  { expectedRevision, readOnFailure }: ClusterWriteOptions,
): TxnParts {
  return {
    compare: [compareModRevision(key, "=", expectedRevision)],
    success: [write],
    failure: readOnFailure ? [opGet(key)] : [],
  };
}

class LibraryWatch implements ClusterWatch {
  readonly #watch: Watch;

  constructor(watch: Watch) {
    this.#watch = watch;
  }

  requestProgress(): void {
    this.#watch.requestProgress();
  }

  cancel(): void {
    this.#watch.cancel();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ClusterWatchResponse, undefined> {
    for await (const response of this.#watch) {
      if (response.canceled) {
        if (response.compactRevision > 0)
          throw new ClusterError("Compacted", "required revision has been compacted");
        throw new Error(`the cluster ended the watch: ${response.cancelReason}`);
      }
      yield { events: response.events.map(eventOf), revision: response.header?.revision ?? 0 };
    }
  }
}

function eventOf(bytes: Uint8Array): ClusterEvent {
  const { type, kv, prevKv } = Event.decode(bytes);
  return {
    type: type === Event_EventType.DELETE ? "delete" : "put",
    record: KeyValue.decode(defined(kv, "the record")),
    previous: prevKv === undefined ? undefined : KeyValue.decode(prevKv),
  };
}
