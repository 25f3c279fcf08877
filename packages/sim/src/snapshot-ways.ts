/**
 * How a snapshot goes from member to member: in pieces over a link, each of which may be the last.
 */
import { raftpb } from "@quorate/proto";
import type { Links } from "./links.ts";
import type { Story } from "./report/story.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Station } from "./sim-transport.ts";

/** A receiver gives up on a snapshot of which nothing came for so long. */
const SNAPSHOT_STALL_MS = 30_000;
/** Bytes of a snapshot that arrive together. */
const SNAPSHOT_PIECE_BYTES = 16 * 1024;

/** A snapshot that leaves a member. */
export interface Shipment {
  readonly from: Station;
  readonly target: Station;
  /** The message that announces it, encoded. */
  readonly announced: Uint8Array;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface ShipmentDeps {
  readonly links: Links;
  readonly scheduler: Scheduler;
  readonly story: Story;
  /** Of messages; half of it breaks the connection at each piece. */
  readonly loss: number;
}

/** Resolves with whether the peer took it over, as far as the sender can know. */
export async function carrySnapshot(shipment: Shipment, deps: ShipmentDeps): Promise<boolean> {
  const { from, target, announced } = shipment;
  const { links, scheduler, story, loss } = deps;
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
  async function* body(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const { value: chunk, done } = await nextChunk();
      if (done === true) return;
      for (let at = 0; at < chunk.length; at += SNAPSHOT_PIECE_BYTES) {
        await scheduler.delay(latency(), target.process);
        if (breaks()) throw new Error("the connection broke");
        yield chunk.slice(at, at + SNAPSHOT_PIECE_BYTES);
      }
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
      const back = links.link(target.name, from.name);
      story.tell(target.name, `${taken ? "took" : "did not take"} the snapshot of ${from.name}`);
      scheduler.after(latency(), () => resolve(taken && !back.cut), from.process);
    };
    scheduler.after(
      0,
      () => {
        target.request.listener
          .snapshotReceived({ message: raftpb.Message.decode(announced), body: body() })
          .then(
            () => end(true),
            () => end(false),
          );
      },
      target.process,
    );
  });
}
