/** A watch that continues where it was, over fake streams. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Event,
  GrpcCode,
  KeyValue,
  ResponseHeader,
  WatchCreateRequest,
  WatchRequest,
  WatchResponse,
  WatchService,
} from "@quorate/proto";
import type { Caller, StreamOptions } from "../src/caller.ts";
import { ClientError } from "../src/errors.ts";
import { LinkError, type LinkStream } from "../src/link.ts";
import { ClientStream } from "../src/stream.ts";
import type { WatchOptions } from "../src/watch.ts";
import { newWatch } from "../src/watch-run.ts";
import { WatchStreams } from "../src/watch-streams.ts";

/** The responses of a stream before it breaks, or why it cannot be opened. */
type Script = readonly WatchResponse[] | ClientError;

const header = (revision: number): ResponseHeader => ResponseHeader.create({ revision });
const created = (revision: number): WatchResponse =>
  WatchResponse.create({ created: true, header: header(revision) });
const put = (revision: number): WatchResponse =>
  WatchResponse.create({
    header: header(revision),
    events: [Event.encode({ kv: KeyValue.encode({ modRevision: revision }) })],
  });
const refused = (reason: string): WatchResponse =>
  WatchResponse.create({ created: true, canceled: true, cancelReason: reason });
const away = new ClientError(GrpcCode.Unavailable, "went away", { endpoint: "e0" });

/**
 * Runs a watch over streams that follow one another; the last one stands still until the watch is
 * cancelled.
 */
async function run(
  scripts: readonly Script[],
  options: WatchOptions = {},
  stopAfter = Number.POSITIVE_INFINITY,
) {
  const starts: number[] = [];
  const opened: StreamOptions[] = [];
  const got: WatchResponse[] = [];
  const breaks: string[] = [];
  const left = [...scripts];
  const caller = {
    timeoutMs: 0,
    timer: {
      after(_delayMs: number, task: () => void) {
        queueMicrotask(task);
        return () => {};
      },
    },
    call: () => assert.fail("no call is needed"),
    async stream(_method: unknown, _endpoint: unknown, how: StreamOptions) {
      opened.push(how);
      const script = left.shift();
      if (script === undefined) assert.fail("a stream too many");
      if (script instanceof ClientError) throw script;
      const link: LinkStream = {
        send(bytes) {
          const { requestUnion } = WatchRequest.decode(bytes);
          if (requestUnion?.case === "createRequest")
            starts.push(WatchCreateRequest.create(requestUnion.value).startRevision);
        },
        finish: () => {},
        cancel: () => {},
        async *responses() {
          for (const response of script) yield WatchResponse.encode(response);
          throw new LinkError(GrpcCode.Unavailable, "went away", true);
        },
      };
      return new ClientStream(WatchService.methods.Watch as never, link, "e0", () => {});
    },
  };
  const watch = newWatch(new WatchStreams(caller as unknown as Caller), "k", {
    onBreak: ({ message }) => breaks.push(message),
    ...options,
  });
  let error: unknown;
  try {
    for await (const response of watch) {
      got.push(response);
      if (got.length >= stopAfter) watch.cancel();
    }
  } catch (thrown) {
    error = thrown;
  }
  return {
    starts,
    opened,
    breaks,
    revisions: got.map((one) => one.header?.revision),
    last: got.at(-1),
    error,
  };
}

test("after a break it continues from the revision after the last one yielded", async () => {
  const { starts, revisions, breaks } = await run(
    [[created(5), put(7), put(9)], away, [created(12), put(10)]],
    {},
    3,
  );
  assert.deepEqual(starts, [0, 10]);
  assert.deepEqual(revisions, [7, 9, 10]);
  assert.deepEqual(breaks, ["went away", "went away"]);
});

test("a watch from now on continues from its creation, even if no change came", async () => {
  const { starts } = await run([[created(5)], [created(8), put(6)]], {}, 1);
  assert.deepEqual(starts, [0, 6]);
});

test("revisions covered by a progress notification are not requested again", async () => {
  const { starts } = await run(
    [
      [created(5), WatchResponse.create({ header: header(20) })],
      [created(21), put(21)],
    ],
    { revision: 3 },
    2,
  );
  assert.deepEqual(starts, [3, 21]);
});

test("a member without a leader ends the stream, and an expired token is renewed", async () => {
  const stale = "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token";
  const { opened, revisions } = await run([[refused(stale)], [created(1), put(2)]], {}, 1);
  assert.deepEqual(opened, [
    { requireLeader: true, renewToken: false },
    { requireLeader: true, renewToken: true },
  ]);
  assert.deepEqual(revisions, [2]);
});

test("a watch that the server refuses reports it and ends", async () => {
  const { last, error } = await run([[refused("etcdserver: permission denied")]]);
  assert.deepEqual(
    [last?.canceled, last?.cancelReason, error],
    [true, "etcdserver: permission denied", undefined],
  );
});

test("an error that no other member can fix is thrown", async () => {
  const denied = new ClientError(
    GrpcCode.Unauthenticated,
    "etcdserver: authentication failed, invalid user ID or password",
  );
  assert.equal((await run([denied])).error, denied);
});
