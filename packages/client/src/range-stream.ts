/**
 * A range that comes in parts, so that neither side has all of it in memory at once.
 *
 *   for await (const { kvs } of getStream(client, "config/", { prefix: true }))
 *     for (const { key, value } of kvs) use(key, value);
 *
 * All parts are of one revision. Where the server has no KV.RangeStream (before etcd 3.7, or
 * through etcd's proxy), the range is read in pages instead, which looks the same.
 */
import { Backoff, check, checkOptions, OBJECT } from "@quorate/host";
import {
  defined,
  GrpcCode,
  KeyValue,
  KVService,
  RangeRequest,
  RangeResponse,
  type ResponseHeader,
} from "@quorate/proto";
import { WAIT_SHAPE, type WaitOptions } from "./call-options.ts";
import { type Caller, pause, type StreamOptions } from "./caller.ts";
import { ClientError } from "./errors.ts";
import { type Bytes, type GetOptions, getRequest } from "./requests.ts";
import { withJson } from "./responses.ts";
import { isStaleToken, REOPEN } from "./resume.ts";
import { Wait } from "./wait.ts";

/** Keys of the first page, and of the largest. */
const FIRST_PAGE_KEYS = 10;
const MAX_PAGE_KEYS = 10_000;
/** Pages grow while they have fewer bytes, and shrink above twice of it. */
const PAGE_BYTES: number = 512 << 10;
/** What a server refuses that has the method. */
const REFUSED = "RangeStream does not support ";

/**
 * Options of a stream: the server refuses orders other than by
 * ascending keys, and bounds of revisions. `sortBy` without an order comes in one part. `timeoutMs`
 * is the time for all parts; default no limit.
 */
export interface StreamedGetOptions extends GetOptions, WaitOptions {}

/** A part of a range. */
export interface GetPart {
  readonly kvs: readonly KeyValue[];
  /** In the last part alone: what GetResult has besides the records. */
  readonly end:
    | { readonly header: ResponseHeader; readonly more: boolean; readonly count: number }
    | undefined;
}

/**
 * The keys of a range with their values, in key order, in parts of up to a few MiB. Rejects with
 * ClientError: Unimplemented for an order or a bound of revisions; Compacted if the history of the
 * revision is dropped meanwhile.
 */
export async function* getStream(
  caller: Caller,
  key: Bytes,
  options: StreamedGetOptions = {},
): AsyncGenerator<GetPart, undefined> {
  check("getStream", "options", options, OBJECT);
  const { signal, timeoutMs, ...range } = options;
  const wait = { signal, timeoutMs };
  checkOptions("getStream", wait, WAIT_SHAPE);
  const request = getRequest(key, range);
  for await (const { kvs, header, more, count } of rangeParts(caller, request, wait))
    yield {
      kvs: kvs.map((kv) => withJson(KeyValue.decode(kv))),
      end: header === undefined ? undefined : { header, more, count },
    };
}

/** The records of getStream() one by one. */
export async function* getEach(
  caller: Caller,
  key: Bytes,
  options: StreamedGetOptions = {},
): AsyncGenerator<KeyValue, undefined> {
  for await (const { kvs } of getStream(caller, key, options)) yield* kvs;
}

/** The response of a range that was read in parts. Rejects with ClientError, as `getStream`. */
export async function streamedRange(
  caller: Caller,
  request: RangeRequest,
  options: WaitOptions = {},
): Promise<RangeResponse> {
  const kvs: Uint8Array[] = [];
  let last: RangeResponse | undefined;
  for await (const part of rangeParts(caller, request, options)) {
    for (const kv of part.kvs) kvs.push(kv);
    last = part;
  }
  return RangeResponse.create({ ...last, kvs });
}

/** What a caller knows of the server, who reads many ranges. */
export interface RangePartsOptions extends WaitOptions {
  /** The server has no KV.RangeStream: read in pages at once. */
  readonly inPages?: boolean;
  /** Called when it turns out that the server has none. */
  readonly noStreams?: () => void;
}

/** The parts as the server sends them: the last one alone has a header, `more` and `count`. */
export async function* rangeParts(
  caller: Caller,
  request: RangeRequest,
  { inPages = false, noStreams, ...options }: RangePartsOptions = {},
): AsyncGenerator<RangeResponse, undefined> {
  using wait = new Wait(caller.timer, options);
  const { signal } = wait;
  if (inPages) return yield* pages(caller, request, signal);
  const backoff = new Backoff(REOPEN);
  /** What is left for pauses, of the time that a call has. */
  let leftMs = caller.timeoutMs;
  let renewToken = false;
  for (;;) {
    let hasBegun = false;
    try {
      for await (const part of streamedParts(caller, request, { renewToken, signal })) {
        hasBegun = true;
        yield part;
      }
      return;
    } catch (error) {
      if (!(error instanceof ClientError) || hasBegun) throw error;
      if (isMissing(error)) break;
      const isFirstStale: boolean = isStaleToken(error.message) && !renewToken;
      renewToken = isFirstStale;
      // A read can be repeated: with a new token, or as long as a call would be.
      if (isFirstStale) continue;
      const pauseMs = backoff.nextMs();
      leftMs -= pauseMs;
      if (error.grpcCode !== GrpcCode.Unavailable || leftMs < 0) throw error;
      await pause(caller.timer, pauseMs, signal);
    }
  }
  noStreams?.();
  yield* pages(caller, request, signal);
}

function isMissing({ grpcCode, message }: ClientError): boolean {
  return grpcCode === GrpcCode.Unimplemented && !message.startsWith(REFUSED);
}

async function* streamedParts(
  caller: Caller,
  request: RangeRequest,
  options: StreamOptions,
): AsyncGenerator<RangeResponse, undefined> {
  const stream = await caller.stream(KVService.methods.RangeStream, undefined, options);
  stream.send(request);
  stream.finish();
  for await (const { rangeResponse } of stream)
    if (rangeResponse !== undefined) yield rangeResponse;
}

/** The range in pages of Range, at the revision of the first one. */
async function* pages(
  caller: Caller,
  request: RangeRequest,
  signal: AbortSignal,
): AsyncGenerator<RangeResponse, undefined> {
  const { limit } = request;
  let { key, revision } = request;
  let header: ResponseHeader | undefined;
  let count = 0;
  let sent = 0;
  for (let pageKeys = FIRST_PAGE_KEYS; ; ) {
    const asked = limit > 0 ? Math.min(pageKeys, limit - sent) : pageKeys;
    const page: RangeRequest = RangeRequest.create({ ...request, key, revision, limit: asked });
    const response = await caller.call(KVService.methods.Range, page, true, { signal });
    if (header === undefined) {
      ({ header, count } = response);
      if (revision === 0) revision = defined(header, "the header").revision;
    }
    const { kvs, more } = response;
    sent += kvs.length;
    if (!more || sent === limit) {
      yield RangeResponse.create({ header, kvs, more, count });
      return;
    }
    yield RangeResponse.create({ kvs });
    key = after(KeyValue.decode(defined(kvs.at(-1), "the last key")).key);
    pageKeys = nextPageKeys(pageKeys, kvs);
  }
}

/** The least key above another one. */
function after(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}

function nextPageKeys(pageKeys: number, kvs: readonly Uint8Array[]): number {
  const sizeBytes = kvs.reduce((sum, { length }) => sum + length, 0);
  if (sizeBytes < PAGE_BYTES) return Math.min(2 * pageKeys, MAX_PAGE_KEYS);
  return sizeBytes > 2 * PAGE_BYTES ? Math.max(1, pageKeys >>> 1) : pageKeys;
}
