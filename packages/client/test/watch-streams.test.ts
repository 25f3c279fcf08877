/** Watches that share a stream, over fake streams. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import {
  Event,
  GrpcCode,
  KeyValue,
  ResponseHeader,
  type WatchCreateRequest,
  WatchRequest,
  WatchResponse,
} from "@quorate/proto";
import type { StreamOptions } from "../src/caller.ts";
import type { ClientError } from "../src/errors.ts";
import { LinkError, type LinkStream } from "../src/link.ts";
import { ClientStream } from "../src/stream.ts";
import type { WatchOptions } from "../src/watch.ts";
import { newWatch } from "../src/watch-run.ts";
import { MAX_WAITING_BYTES, MAX_WATCHES, WatchStreams } from "../src/watch-streams.ts";

type Id = WatchResponse["watchId"];

/** The member's end of one stream. */
class FakeStream implements LinkStream {
  readonly created: WatchCreateRequest[] = [];
  readonly cancelled: Id[] = [];
  progressRequests = 0;
  isCancelled = false;
  /** Responses that the client has read. */
  read = 0;
  readonly options: StreamOptions;
  readonly #queue: (WatchResponse | Error)[] = [];
  #wake = (): void => {};

  constructor(options: StreamOptions) {
    this.options = options;
  }

  send(bytes: Uint8Array): void {
    const { requestUnion } = WatchRequest.decode(bytes);
    if (requestUnion?.case === "createRequest") this.created.push(requestUnion.value);
    else if (requestUnion?.case === "cancelRequest")
      this.cancelled.push(requestUnion.value.watchId);
    else this.progressRequests++;
  }

  finish(): void {}

  cancel(): void {
    this.isCancelled = true;
    this.#wake();
  }

  /** Sends a response, or ends the stream with an error. */
  give(response: Partial<WatchResponse> | Error): void {
    this.#queue.push(
      response instanceof Error
        ? response
        : WatchResponse.create({ header: ResponseHeader.create({ revision: 7 }), ...response }),
    );
    this.#wake();
  }

  /** Confirms the watch that was requested at this place. */
  confirm(at: number, watchId: Id = this.created[at]!.watchId): void {
    this.give({ watchId, created: true });
  }

  async *responses(): AsyncGenerator<Uint8Array> {
    while (!this.isCancelled) {
      const next = this.#queue.shift();
      if (next instanceof Error) throw next;
      if (next !== undefined) {
        this.read++;
        yield WatchResponse.encode(next);
      } else
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
    }
  }
}

interface Timer {
  readonly delayMs: number;
  readonly task: () => void;
}

function world() {
  const opened: FakeStream[] = [];
  const timers = new Set<Timer>();
  const streams = new WatchStreams({
    timer: {
      after(delayMs, task) {
        const timer = { delayMs, task };
        timers.add(timer);
        return () => void timers.delete(timer);
      },
    },
    async stream(method: never, _endpoint: unknown, options: StreamOptions) {
      const stream = new FakeStream(options);
      opened.push(stream);
      return new ClientStream(method, stream, "e0", () => {}) as never;
    },
  });
  return {
    opened,
    /** Runs what waits for a time. */
    async elapse() {
      for (const timer of [...timers]) {
        timers.delete(timer);
        timer.task();
      }
      await turn();
    },
    watch(key: string, options: WatchOptions = {}) {
      const watch = newWatch(streams, key, options);
      const responses = watch[Symbol.asyncIterator]();
      return { watch, next: () => responses.next(), end: () => responses.return?.() };
    },
  };
}

const put = (revision: number, bytes = 0): Uint8Array =>
  Event.encode({
    kv: KeyValue.encode({ modRevision: revision, value: new Uint8Array(bytes) }),
  });

test("watches share a stream, each gets its own responses, and the last one ends it", async () => {
  const { opened, watch } = world();
  const [a, b] = [watch("a"), watch("b")];
  const [nextA, nextB] = [a.next(), b.next()];
  await turn();
  const [stream] = opened;
  assert.equal(opened.length, 1);
  // Whether the server takes its id, the first one shows.
  assert.equal(stream!.created.length, 1);
  stream!.confirm(0);
  await turn();
  assert.equal(stream!.created.length, 2);
  stream!.confirm(1);
  const [idA, idB] = stream!.created.map(({ watchId }) => watchId);
  stream!.give({ watchId: idB!, events: [put(9)] });
  stream!.give({ watchId: idA!, events: [put(8), put(10)] });
  assert.equal((await nextA).value?.events.length, 2);
  assert.equal((await nextB).value?.events.length, 1);
  await a.end();
  assert.deepEqual(stream!.cancelled, [idA]);
  assert.equal(stream!.isCancelled, false);
  await b.end();
  assert.equal(stream!.isCancelled, true);
});

test("a server that chooses the ids is asked for one watch at a time", async () => {
  const { opened, watch } = world();
  const watches = ["a", "b", "c"].map((key) => watch(key));
  const nexts = watches.map(({ next }) => next());
  await turn();
  const [stream] = opened;
  for (const [id, key] of [...["a", "b", "c"].entries()]) {
    assert.deepEqual(
      stream!.created.map((one) => Buffer.from(one.key).toString()),
      ["a", "b", "c"].slice(0, id + 1),
      key,
    );
    stream!.confirm(id, id);
    await turn();
  }
  for (const id of [2, 0, 1]) stream!.give({ watchId: id, events: [put(10 + id)] });
  const revisions = await Promise.all(
    nexts.map(async (one) => {
      const [event] = (await one).value!.events;
      return KeyValue.decode(Event.decode(event!).kv!).modRevision;
    }),
  );
  assert.deepEqual(revisions, [10, 11, 12]);
});

test("a refusal has no id, and is that of the oldest creation", async () => {
  const { opened, watch } = world();
  const watches = ["a", "b", "c"].map((key) => watch(key));
  const nexts = watches.map(({ next }) => next());
  await turn();
  const [stream] = opened;
  stream!.confirm(0);
  await turn();
  stream!.give({ watchId: -1, created: true, canceled: true, cancelReason: "no" });
  stream!.confirm(2);
  stream!.give({ watchId: stream!.created[2]!.watchId, events: [put(9)] });
  assert.equal((await nexts[1])?.value?.cancelReason, "no");
  assert.equal((await nexts[2])?.value?.events.length, 1);
});

test("a watch that is cancelled before it is confirmed is cancelled at the member", async () => {
  const { opened, watch } = world();
  const [a, b] = [watch("a"), watch("b")];
  const nextA = a.next();
  void b.next();
  await turn();
  a.watch.cancel();
  assert.equal((await nextA).done, true);
  const [stream] = opened;
  assert.deepEqual(stream!.cancelled, []);
  stream!.confirm(0, 5);
  await turn();
  assert.deepEqual(stream!.cancelled, [5]);
  assert.equal(stream!.created.length, 2);
});

test("one that falls behind goes on alone from where it was, and holds nobody back", async () => {
  const { opened, watch, elapse } = world();
  let confirmations = 0;
  const slow = watch("slow", { onCreated: () => confirmations++ });
  const quick = watch("quick");
  const first = slow.next();
  const quickly = quick.next();
  await turn();
  const [shared] = opened;
  shared!.confirm(0);
  await turn();
  shared!.confirm(1);
  const [slowId, quickId] = shared!.created.map(({ watchId }) => watchId);
  const half = MAX_WAITING_BYTES / 2 - 100;
  for (const revision of [10, 11, 12, 13, 14])
    shared!.give({ watchId: slowId!, events: [put(revision, half)] });
  shared!.give({ watchId: quickId!, events: [put(15)] });
  assert.equal((await first).value?.events.length, 1);
  await turn();
  await elapse();
  assert.equal((await quickly).value?.events.length, 1, "the other one gets its response");
  assert.deepEqual(shared!.cancelled, [slowId]);
  // What waited comes first: 11, 12 and 13, at which the bound was passed.
  for (const revision of [11, 12, 13]) {
    const [event] = (await slow.next()).value!.events;
    assert.equal(KeyValue.decode(Event.decode(event!).kv!).modRevision, revision);
  }
  const later = slow.next();
  await turn();
  const [, alone] = opened;
  assert.equal(alone!.created[0]?.startRevision, 14);
  alone!.confirm(0);
  const { watchId } = alone!.created[0]!;
  for (const revision of [14, 15, 16]) alone!.give({ watchId, events: [put(revision)] });
  assert.equal((await later).value?.events.length, 1);
  await turn();
  assert.equal(alone!.read, 3, "the confirmation, 14, and 15, which waits");
  assert.equal(confirmations, 1);
  await slow.end();
  assert.equal(alone!.isCancelled, true);
});

test("a response that is too large fails the watch that gets it, and no other", async () => {
  const { opened, watch } = world();
  const [a, b] = [watch("a"), watch("b")];
  const [nextA, nextB] = [a.next(), b.next()];
  await turn();
  opened[0]!.confirm(0);
  await turn();
  const tooLarge = () => new LinkError(GrpcCode.ResourceExhausted, "larger than max", true);
  opened[0]!.give(tooLarge());
  await turn();
  const [, aloneA, aloneB] = opened;
  for (const one of [aloneA, aloneB]) one!.confirm(0);
  aloneA!.give(tooLarge());
  await assert.rejects(nextA, { code: "ResourceExhausted" });
  aloneB!.give({ watchId: aloneB!.created[0]!.watchId, events: [put(9)] });
  assert.equal((await nextB).value?.events.length, 1);
});

test("a break meets all watches of the stream, and they share the next one", async () => {
  const { opened, watch, elapse } = world();
  const breaks: string[] = [];
  const onBreak = ({ message }: ClientError) => void breaks.push(message);
  const nexts = ["a", "b"].map((key) => watch(key, { onBreak }).next());
  await turn();
  opened[0]!.confirm(0);
  opened[0]!.give(new LinkError(GrpcCode.Unavailable, "went away", true));
  await turn();
  await elapse();
  assert.deepEqual(breaks, ["went away", "went away"]);
  assert.equal(opened.length, 2);
  const again = opened[1]!;
  again.confirm(0);
  await turn();
  again.confirm(1);
  for (const { watchId } of again.created) again.give({ watchId, events: [put(9)] });
  for (const next of nexts) assert.equal((await next).value?.events.length, 1);
  // Only what was confirmed has a revision to go on from.
  assert.deepEqual(
    again.created.map(({ startRevision }) => startRevision),
    [8, 0],
  );
});

test("a stream whose token is not accepted any more keeps its watches and gets no others", async () => {
  const { opened, watch, elapse } = world();
  const [a, b] = [watch("a"), watch("b")];
  const nextA = a.next();
  await turn();
  opened[0]!.confirm(0);
  await turn();
  const nextB = b.next();
  await turn();
  const cancelReason = "etcdserver: invalid auth token";
  opened[0]!.give({ watchId: -1, created: true, canceled: true, cancelReason });
  await turn();
  await elapse();
  assert.deepEqual(
    opened.map(({ options }) => options.renewToken),
    [false, true],
  );
  opened[1]!.confirm(0);
  opened[1]!.give({ watchId: opened[1]!.created[0]!.watchId, events: [put(9)] });
  assert.equal((await nextB).value?.events.length, 1);
  opened[0]!.give({ watchId: opened[0]!.created[0]!.watchId, events: [put(9)] });
  assert.equal((await nextA).value?.events.length, 1);
});

test("progress is told to those who asked", async () => {
  const { opened, watch } = world();
  const [a, b] = [watch("a"), watch("b")];
  const [nextA, nextB] = [a.next(), b.next()];
  a.watch.requestProgress();
  await turn();
  const [stream] = opened;
  stream!.confirm(0);
  await turn();
  stream!.confirm(1);
  await turn();
  assert.equal(stream!.progressRequests, 1);
  stream!.give({ watchId: -1, header: ResponseHeader.create({ revision: 20 }) });
  assert.equal((await nextA).value?.header?.revision, 20);
  stream!.give({ watchId: stream!.created[1]!.watchId, events: [put(21)] });
  assert.equal((await nextB).value?.events.length, 1, "the other one gets no progress");
});

test("a watch whose question for progress stays open asks again alone, until it comes", async () => {
  const { opened, watch, elapse } = world();
  const [a, b] = [watch("a"), watch("b")];
  const [nextA, nextB] = [a.next(), b.next()];
  a.watch.requestProgress();
  await turn();
  opened[0]!.confirm(0);
  await turn();
  opened[0]!.confirm(1);
  await turn();
  // One of the others begins after the present revision: the server tells no progress of any.
  await elapse();
  assert.equal(opened[0]!.progressRequests, 1);
  const alone = opened[1]!;
  assert.deepEqual(
    alone.created.map(({ startRevision }) => startRevision),
    [8],
  );
  alone.confirm(0);
  await turn();
  assert.equal(alone.progressRequests, 1);
  await elapse();
  assert.equal(alone.progressRequests, 2);
  alone.give({ watchId: -1, header: ResponseHeader.create({ revision: 20 }) });
  assert.equal((await nextA).value?.header?.revision, 20);
  opened[0]!.give({ watchId: opened[0]!.created[1]!.watchId, events: [put(21)] });
  assert.equal((await nextB).value?.events.length, 1);
  assert.equal(opened.length, 2);
});

test("a watch that is to be told of progress shares no stream", async () => {
  const { opened, watch } = world();
  const watches = [watch("a", { progressNotify: true }), watch("b"), watch("c")];
  const nexts = watches.map((one) => one.next());
  await turn();
  opened[1]!.confirm(0);
  await turn();
  assert.deepEqual(
    opened.map(({ created }) => created.length),
    [1, 2],
  );
  for (const one of watches) one.watch.cancel();
  await Promise.all(nexts);
});

test("a watch whose history is compacted is cancelled at the member, and ends", async () => {
  const { opened, watch } = world();
  const a = watch("a", { revision: 3 });
  const next = a.next();
  void watch("b").next();
  await turn();
  const [stream] = opened;
  stream!.confirm(0);
  const { watchId } = stream!.created[0]!;
  stream!.give({ watchId, canceled: true, compactRevision: 5 });
  assert.equal((await next).value?.compactRevision, 5);
  assert.equal((await a.next()).done, true);
  assert.deepEqual(stream!.cancelled, [watchId]);
  assert.equal(stream!.isCancelled, false);
});

test("a stream takes no more than its number of watches", async () => {
  const { opened, watch } = world();
  for (let i = 0; i <= MAX_WATCHES; i++) void watch(`${i}`).next();
  await turn();
  assert.equal(opened.length, 2);
});
