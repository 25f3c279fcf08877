/**
 * How a snapshot goes from member to member: the transport's frames, in pieces over a link, each of
 * which may be the last.
 *
 * A byte of the state that changes on its way has to be noticed by the receiver (WIRE-2 in
 * wire/wire.ts): the stream has checksums of its own, and an end.
 */
import type { Random } from "@quorate/host";
import { concat, equals } from "@quorate/proto";
import {
  decodeMessage,
  END_FRAME,
  encodeWithLength,
  FrameBatch,
  FrameError,
  FrameReader,
  SnapshotBodyReader,
  type SnapshotForm,
} from "@quorate/transport";
import type { Scheduler } from "./base/scheduler.ts";
import { Violation, violate } from "./base/violation.ts";
import type { Links } from "./links.ts";
import type { Story } from "./report/story.ts";
import type { Station } from "./sim-transport.ts";
import { cutAtRandom } from "./wire/cuts.ts";

/** A receiver gives up on a snapshot of which nothing came for so long. */
const SNAPSHOT_STALL_MS = 30_000;
/** Bytes of a snapshot that arrive together. */
const SNAPSHOT_PIECE_BYTES = 16 * 1024;

/** Longer chunks are sent in parts, as by the real transport. */
const MAX_CHUNK_BYTES = 1024 * 1024;
/** As in the real transport's options. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

/** A snapshot that leaves a member. */
export interface Shipment {
  readonly from: Station;
  readonly target: Station;
  /** The message that announces it, encoded. */
  readonly announced: Uint8Array;
  readonly body: AsyncIterable<Uint8Array>;
  readonly form: SnapshotForm;
}

export interface ShipmentDeps {
  readonly links: Links;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly story: Story;
  /** Of messages; half of it breaks the connection at each piece. */
  readonly loss: number;
  /** The chance that a byte of a piece changes. */
  readonly corruption: number;
  /** A snapshot was taken over although a byte of it had changed. */
  fail(error: Violation): void;
}

/** The frames of a stream, each in one piece: the message, the state, the end. */
async function* framesOf(
  announced: Uint8Array,
  chunks: () => Promise<IteratorResult<Uint8Array>>,
): AsyncGenerator<Uint8Array> {
  const batch = new FrameBatch();
  const framed = (content: Uint8Array) => {
    batch.add(content);
    return concat(batch.take());
  };
  yield framed(announced);
  for (let chunk = await chunks(); chunk.done !== true; chunk = await chunks()) {
    for (let at = 0; at < chunk.value.length; at += MAX_CHUNK_BYTES)
      yield framed(chunk.value.subarray(at, at + MAX_CHUNK_BYTES));
  }
  yield END_FRAME.slice();
}

/** The contents of the frames up to the end. Throws FrameError for a stream that breaks off. */
async function* contentsOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = new FrameReader(MAX_MESSAGE_BYTES);
  for await (const piece of pieces) {
    reader.push(piece);
    for (let frame = reader.take(); frame !== undefined; frame = reader.take()) {
      if (frame.length === 0) return;
      yield frame;
    }
  }
  throw new FrameError("snapshot broke off");
}

/** The same in etcd's form: the message with its length, and the file as it is. */
async function* etcdFramesOf(
  announced: Uint8Array,
  chunks: () => Promise<IteratorResult<Uint8Array>>,
): AsyncGenerator<Uint8Array> {
  yield encodeWithLength(decodeMessage(announced));
  for (let chunk = await chunks(); chunk.done !== true; chunk = await chunks()) yield chunk.value;
}

async function* etcdContentsOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = new SnapshotBodyReader(MAX_MESSAGE_BYTES);
  for await (const piece of pieces) {
    reader.push(piece);
    for (let part = reader.take(); part !== undefined; part = reader.take()) yield part;
  }
}

/** Resolves with whether the peer took it over, as far as the sender can know. */
export async function carrySnapshot(shipment: Shipment, deps: ShipmentDeps): Promise<boolean> {
  const { from, target, announced, form } = shipment;
  const isEtcd = form === "etcd";
  const { links, scheduler, random, story, loss } = deps;
  const link = links.link(from.name, target.name);
  const latency = () => links.latencyMs(link);
  const breaks = () => !from.process.alive || link.cut || links.happens(loss / 2);
  const chunks = shipment.body[Symbol.asyncIterator]();
  const nextChunk = () =>
    new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
      const gone = () =>
        scheduler.after(latency(), () => reject(new Error("the connection broke")), target.process);
      const forget = from.process.onEnd(gone);
      const stalled = scheduler.after(
        SNAPSHOT_STALL_MS,
        () => reject(new Error("nothing came for too long")),
        target.process,
      );
      const over = () => {
        forget();
        stalled.cancel();
      };
      if (!from.process.alive) gone();
      else chunks.next().then(resolve, reject).finally(over);
    });
  let isChanged = false;
  /**
   * Frames in the pieces in which they come. The message arrives as it was sent: TLS alone would
   * notice a change of it.
   */
  async function* pieces(): AsyncGenerator<Uint8Array> {
    let isFirst = true;
    const frames = (isEtcd ? etcdFramesOf : framesOf)(announced, nextChunk);
    for await (const frame of frames) {
      for (let at = 0; at < frame.length; at += SNAPSHOT_PIECE_BYTES) {
        if (!isFirst) {
          await scheduler.delay(latency(), target.process);
          if (breaks()) throw new Error("the connection broke");
        }
        const piece = frame.slice(at, at + SNAPSHOT_PIECE_BYTES);
        if (!isFirst && links.happens(deps.corruption)) {
          isChanged = true;
          piece[random.below(piece.length)] ^= 1 + random.below(255);
          story.record(target.name, `is sent a byte that changed in the snapshot of ${from.name}`);
        }
        yield* cutAtRandom(piece, random);
      }
      isFirst = false;
    }
  }
  await scheduler.delay(latency(), from.process);
  if (link.cut || !target.process.alive) return false;
  return new Promise((resolve) => {
    const forget = target.process.onEnd(() =>
      scheduler.after(latency(), () => resolve(false), from.process),
    );
    const end = (taken: boolean) => {
      forget();
      if (taken && isChanged)
        deps.fail(
          new Violation(
            `WIRE-2: ${target.name} took a snapshot of ${from.name} in which a byte had changed`,
          ),
        );
      const back = links.link(target.name, from.name);
      story.record(target.name, `${taken ? "took" : "did not take"} the snapshot of ${from.name}`);
      scheduler.after(latency(), () => resolve(taken && !back.cut), from.process);
    };
    const receive = async () => {
      const contents = (isEtcd ? etcdContentsOf : contentsOf)(pieces());
      const first = await contents.next();
      if (first.done === true || !equals(first.value, announced))
        violate("WIRE-1", "a snapshot's message differs from what was sent");
      await target.request.listener.snapshotReceived({
        message: decodeMessage(first.value),
        body: contents,
        form,
      });
    };
    const failed = (error: unknown) => {
      if (error instanceof Violation) deps.fail(error);
      end(false);
    };
    scheduler.after(0, () => void receive().then(() => end(true), failed), target.process);
  });
}
