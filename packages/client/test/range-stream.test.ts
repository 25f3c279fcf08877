/** A range in parts, over fake streams and pages. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  fromUtf8,
  GrpcCode,
  KeyValue,
  KVService,
  type RangeRequest,
  RangeResponse,
  RangeStreamResponse,
  ResponseHeader,
  toUtf8,
} from "@quorate/proto";
import type { Caller, StreamOptions } from "../src/caller.ts";
import type { ClientError } from "../src/errors.ts";
import { LinkError, type LinkStream } from "../src/link.ts";
import { getStream, type StreamedGetOptions } from "../src/range-stream.ts";
import { ClientStream } from "../src/stream.ts";

/** The parts of a stream, then its end: an error, or none; "waits": it never ends by itself. */
interface Script {
  readonly parts: readonly RangeResponse[];
  readonly end?: readonly [code: number, message: string] | "waits";
}

const kv = (key: string): Uint8Array => KeyValue.encode({ key: fromUtf8(key) }).slice();
const part = (...keys: string[]): RangeResponse => RangeResponse.create({ kvs: keys.map(kv) });
const last = (revision: number, count: number, ...keys: string[]): RangeResponse =>
  RangeResponse.create({ ...part(...keys), header: ResponseHeader.create({ revision }), count });

/** Reads a range over streams that follow one another, and pages of a store with these keys. */
async function read(
  scripts: readonly Script[],
  options: StreamedGetOptions = {},
  stored: readonly string[] = [],
) {
  const opened: StreamOptions[] = [];
  const pages: RangeRequest[] = [];
  const left = [...scripts];
  const caller = {
    // Pauses of 100, 200 and 400 ms.
    timeoutMs: 700,
    timer: {
      after(_delayMs: number, task: () => void) {
        const timer = setImmediate(task);
        return () => clearImmediate(timer);
      },
    },
    async call(method: { path: string }, request: RangeRequest) {
      assert.equal(method.path, KVService.methods.Range.path);
      pages.push(request);
      const { limit } = request;
      const found = stored.filter((key) => key >= toUtf8(request.key));
      const answered = limit > 0 ? found.slice(0, limit) : found;
      return RangeResponse.create({
        ...last(40 + pages.length, found.length, ...answered),
        more: answered.length < found.length,
      });
    },
    async stream(method: { path: string }, _endpoint: unknown, how: StreamOptions) {
      assert.equal(method.path, KVService.methods.RangeStream.path);
      opened.push(how);
      const { parts, end } = left.shift() ?? assert.fail("a stream too many");
      const stopped = Promise.withResolvers<void>();
      const link: LinkStream = {
        send: () => {},
        finish: () => {},
        cancel: () => stopped.resolve(),
        async *responses() {
          for (const rangeResponse of parts) yield RangeStreamResponse.encode({ rangeResponse });
          if (end === "waits") await stopped.promise;
          else if (end !== undefined) throw new LinkError(...end, true);
        },
      };
      const { RangeStream } = KVService.methods;
      return new ClientStream(RangeStream as never, link, "e0", () => {}, how.signal);
    },
  };
  const keys: string[] = [];
  const ends: string[] = [];
  let error: unknown;
  try {
    for await (const { kvs, end } of getStream(caller as unknown as Caller, "a", options)) {
      keys.push(...kvs.map(({ key }) => toUtf8(key)));
      if (end !== undefined) ends.push(`${end.header.revision} ${end.more} ${end.count}`);
    }
  } catch (thrown) {
    error = thrown;
  }
  return { keys: keys.join(""), ends, error: error as ClientError | undefined, opened, pages };
}

test("parts come as they are, and the last one has the rest of the response", async () => {
  const { keys, ends, error } = await read([{ parts: [part("a", "b"), last(7, 3, "c")] }]);
  assert.deepEqual([keys, ends, error], ["abc", ["7 false 3"], undefined]);
});

test("a server without the method is read in pages, at the revision of the first", async () => {
  const stored = Array.from({ length: 26 }, (_, i) => String.fromCharCode(97 + i));
  for (const message of [
    "unknown method RangeStream for service etcdserverpb.KV",
    "RangeStream is not supported by the gRPC proxy",
  ]) {
    const missing: Script = { parts: [], end: [GrpcCode.Unimplemented, message] };
    const all = await read([missing], { fromKey: true }, stored);
    assert.deepEqual([all.keys, all.ends], [stored.join(""), ["41 false 26"]]);
    assert.deepEqual(
      all.pages.map(({ key, revision, limit }) => [toUtf8(key), revision, limit]),
      [
        ["a", 0, 10],
        ["j\0", 41, 20],
      ],
    );
    const some = await read([missing], { fromKey: true, limit: 12 }, stored);
    assert.deepEqual([some.keys, some.ends], [stored.slice(0, 12).join(""), ["41 true 26"]]);
  }
});

test("what the server refuses is not read in pages", async () => {
  const message = "RangeStream does not support custom sort orders";
  const { error } = await read([{ parts: [], end: [GrpcCode.Unimplemented, message] }]);
  assert.equal(error?.message, message);
});

test("a stream that fails before its first part is opened again, with a new token if it was that", async () => {
  const stale: Script = {
    parts: [],
    end: [GrpcCode.Unauthenticated, "etcdserver: invalid auth token"],
  };
  const away: Script = { parts: [], end: [GrpcCode.Unavailable, "went away"] };
  const { keys, opened } = await read([stale, away, { parts: [last(7, 1, "a")] }]);
  assert.equal(keys, "a");
  assert.deepEqual(
    opened.map(({ renewToken }) => renewToken),
    [false, true, false],
  );
  const tried = await read([away, away, away, away]);
  assert.deepEqual([tried.error?.message, tried.opened.length], ["went away", 4]);
  const refused = await read([stale, stale]);
  assert.deepEqual([refused.error?.code, refused.opened.length], ["InvalidAuthToken", 2]);
  const begun = await read([{ ...away, parts: [part("a")] }]);
  assert.deepEqual([begun.keys, begun.error?.message], ["a", "went away"]);
});

test("a stream beyond its timeout ends with Go's text", async () => {
  const { keys, error } = await read([{ parts: [part("a")], end: "waits" }], { timeoutMs: 1 });
  assert.deepEqual([keys, error?.message], ["a", "context deadline exceeded"]);
  assert.equal(error?.grpcCode, GrpcCode.DeadlineExceeded);
});
