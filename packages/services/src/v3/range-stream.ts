/**
 * KV.RangeStream: a range in parts, so that a large one needs no more memory than a part of it
 * (etcd: EtcdServer.rangeStream).
 *
 *     request -> ReadIndex round -> part 1, which fixes the revision -> part 2 -> ... -> last part
 *                                                                              header, more, count
 *
 * Each part is a read of its own: permission is checked again, and compaction is not held back
 * while the client reads slowly. A part is read once the parts before it have left.
 */

import type { Member, SliceTask } from "@quorate/member";
import { type Caller, callerOf, pinned } from "@quorate/member";
import {
  type ErrorName,
  errorOf,
  GrpcCode,
  KVService,
  prefix,
  RangeRequest,
  RangeRequest_SortOrder,
  RangeRequest_SortTarget,
  RangeResponse,
} from "@quorate/proto";
import {
  type PieceSource,
  StatusError,
  type StreamCall,
  type StreamHandler,
  type StreamListener,
} from "@quorate/rpc";
import {
  type ChunkSummary,
  checkRange,
  type KeyRange,
  keyRange,
  rangeChunk,
  rangeInto,
  type Steps,
} from "@quorate/store";
import { PacedCall } from "./paced-call.ts";
import { RangeWriter } from "./range-answer.ts";

/** Keys of the first part (etcd: initialStreamChunkLimit). */
const FIRST_CHUNK_KEYS = 10;
/**
 * A part ends when its records reach so many times --max-request-bytes. etcd has a part of that
 * size as well, and halves the keys of the next one, but sends it whole however large it is.
 */
export const MAX_CHUNK_REQUESTS = 2;
/** RangeStreamResponse.range_response. */
const RANGE_RESPONSE_TAG = 0x0a;

/** The handlers of the service's stream, by path. */
export function rangeStreams(member: Member): ReadonlyMap<string, StreamHandler> {
  return new Map<string, StreamHandler>([
    [KVService.methods.RangeStream.path, (call) => new RangeStreaming(member, call)],
  ]);
}

/**
 * The keys of the next part, so that it comes near `targetBytes`: between half and twice of that
 * nothing changes (etcd: adjustChunkLimit).
 */
export function nextChunkKeys(lastKeys: number, lastBytes: number, targetBytes: number): number {
  if (lastBytes < Math.floor(targetBytes / 2)) return lastKeys * 2;
  if (lastBytes > targetBytes * 2) return Math.max(1, Math.floor(lastKeys / 2));
  return lastKeys;
}

function refusal(request: RangeRequest): Error | undefined {
  const error: ErrorName | undefined = checkRange(request);
  if (error !== undefined) return errorOf(error);
  const { sortOrder, sortTarget } = request;
  const isPlain =
    sortOrder === RangeRequest_SortOrder.NONE ||
    (sortTarget === RangeRequest_SortTarget.KEY && sortOrder === RangeRequest_SortOrder.ASCEND);
  if (!isPlain)
    return new StatusError(
      GrpcCode.Unimplemented,
      "RangeStream does not support custom sort orders",
    );
  const isFiltered =
    request.minModRevision !== 0 ||
    request.maxModRevision !== 0 ||
    request.minCreateRevision !== 0 ||
    request.maxCreateRevision !== 0;
  if (isFiltered)
    return new StatusError(GrpcCode.Unimplemented, "RangeStream does not support revision filters");
  return undefined;
}

/** How far a stream has come. */
interface Progress {
  /** What is left of the range. */
  readonly keys: KeyRange;
  /** The revision that is read; 0 before the first part. */
  readonly at: number;
  /** The store's revision at the first part, for the header; 0 before. */
  readonly headerRevision: number;
  /** Keys that were sent. */
  readonly sent: number;
  /** Keys of the next part. */
  readonly chunkKeys: number;
}

/** A part to be sent, and what comes after it; undefined behind the last part. */
interface Chunk {
  readonly message: Uint8Array[];
  readonly next: Progress | undefined;
}

/** One call. */
class RangeStreaming implements StreamListener {
  readonly #member: Member;
  readonly #caller: Caller;
  readonly #call: StreamCall;
  readonly #paced: PacedCall;
  #hasRequest = false;

  constructor(member: Member, call: StreamCall) {
    this.#member = member;
    this.#caller = callerOf(call.context);
    this.#call = call;
    this.#paced = new PacedCall(call);
  }

  message(bytes: Uint8Array): void {
    try {
      if (this.#hasRequest)
        throw new StatusError(GrpcCode.Internal, "more than one message in a call that takes one");
      this.#hasRequest = true;
      const request = RangeRequest.decode(bytes);
      const refused = refusal(request);
      if (refused !== undefined) throw refused;
      void this.#run(request);
    } catch (error) {
      this.cancelled();
      throw error;
    }
  }

  halfClosed(): void {
    if (this.#hasRequest) return;
    this.#paced.cancel();
    this.#call.end(new StatusError(GrpcCode.Internal, "unexpected EOF"));
  }

  drained(): void {
    this.#paced.drained();
  }

  cancelled(): void {
    this.#paced.cancel();
  }

  /** Sends all parts; never rejects. */
  async #run(request: RangeRequest): Promise<void> {
    try {
      let progress: Progress | undefined = {
        keys: keyRange(request.key, request.rangeEnd),
        at: request.revision,
        headerRevision: 0,
        sent: 0,
        chunkKeys: FIRST_CHUNK_KEYS,
      };
      while (progress !== undefined) {
        await this.#paced.hasSpace();
        if (this.#paced.isCancelled) return;
        const { message, next }: Chunk = await this.#read(request, progress);
        if (this.#paced.isCancelled) return;
        this.#paced.send(message);
        progress = next;
      }
      this.#call.end();
    } catch (error) {
      this.#paced.fail(error);
    }
  }

  /** Reads one part, if the caller still may. */
  #read(request: RangeRequest, progress: Progress): Promise<Chunk> {
    const member = this.#member;
    const steps = (task: SliceTask): Steps<Chunk> =>
      request.countOnly
        ? countSteps(member, request, task)
        : request.sortTarget === RangeRequest_SortTarget.KEY
          ? chunkSteps(member, request, progress, task)
          : sortedSteps(member, request, task);
    return member.read(this.#caller, {
      access: { kind: "range", request },
      linearizable: !request.serializable && progress.headerRevision === 0,
      run: async () => {
        const startMs = member.clock.monotonicMs();
        let success = "false";
        try {
          const chunk = await member.slices.run(this.#caller, steps);
          success = "true";
          return chunk;
        } finally {
          const seconds = (member.clock.monotonicMs() - startMs) / 1000;
          member.metrics.rangeDuration.with(success).observe(seconds);
        }
      },
    });
  }
}

/** The message of a RangeResponse whose pieces are at hand. */
function messageOf(response: PieceSource): Uint8Array[] {
  const message = [prefix(RANGE_RESPONSE_TAG, response.sizeBytes)];
  for (let piece = response.next(); piece !== undefined; piece = response.next())
    if (piece.length > 0) message.push(piece);
  return message;
}

function* countSteps(member: Member, request: RangeRequest, task: SliceTask): Steps<Chunk> {
  const keys = keyRange(request.key, request.rangeEnd);
  const [revision, count] = yield* pinned(member, task, function* (view) {
    view.counts.ranges++;
    const total = yield* view.count(keys, view.resolve(request.revision));
    return [view.revision, total] as const;
  });
  const response = new RangeWriter().finish(member.header(revision), { more: false, count });
  return { message: messageOf(response), next: undefined };
}

/**
 * The range in the order of a sort target that has no order: all in one part. etcd sorts each part
 * by itself, and loses keys behind the first.
 */
function* sortedSteps(member: Member, request: RangeRequest, task: SliceTask): Steps<Chunk> {
  const writer = new RangeWriter(task.charge);
  const summary = yield* pinned(member, task, (view) => rangeInto(view, request, writer));
  const response = writer.finish(member.header(summary.revision), summary);
  return { message: messageOf(response), next: undefined };
}

function* chunkSteps(
  member: Member,
  request: RangeRequest,
  progress: Progress,
  task: SliceTask,
): Steps<Chunk> {
  const { maxRequestBytes } = member.config;
  const writer = new RangeWriter(task.charge);
  const left = request.limit > 0 ? request.limit - progress.sent : Number.POSITIVE_INFINITY;
  const limit = Math.min(progress.chunkKeys, left);
  const { keys, at } = progress;
  const chunk = {
    keys,
    revision: at,
    keysOnly: request.keysOnly,
    limit,
    maxBytes: MAX_CHUNK_REQUESTS * maxRequestBytes,
  };
  return yield* pinned(member, task, function* (view) {
    const summary = yield* rangeChunk(view, chunk, writer);
    const headerRevision = progress.headerRevision || summary.revision;
    const sent = progress.sent + summary.keys;
    const { last } = summary;
    const rest: KeyRange | undefined =
      last === undefined
        ? undefined
        : { ...(keys as KeyRange & { single: false }), key: `${last}\0` };
    const pinnedAt = at > 0 ? at : headerRevision;
    if (rest === undefined || sent === request.limit) {
      const after = rest === undefined ? 0 : yield* view.count(rest, pinnedAt);
      const end = { more: rest !== undefined, count: sent + after };
      return {
        message: messageOf(writer.finish(member.header(headerRevision), end)),
        next: undefined,
      };
    }
    return {
      message: messageOf(writer.finish(undefined, { more: false, count: 0 })),
      next: {
        keys: rest,
        at: pinnedAt,
        headerRevision,
        sent,
        chunkKeys: nextChunkKeys(
          // One that was cut has fewer keys than its limit.
          summary.keys,
          etcdBytes(summary),
          maxRequestBytes,
        ),
      },
    };
  });
}

/** Bytes of the part as etcd counts them: its range's response, with a header, more and count. */
function etcdBytes({ revision, keys, sizeBytes }: ChunkSummary): number {
  const header = { clusterId: 0n, memberId: 0n, revision, raftTerm: 0 };
  return sizeBytes + RangeResponse.encode({ header, more: true, count: keys + 1 } as never).length;
}
