/** Receives snapshots of other members, whichever side dialled the connection. */
import type { IncomingMessage } from "node:http";
import type { Http2Stream } from "node:http2";
import { raftpb } from "@quorate/proto";
import { SnapshotBodyReader } from "../src/etcd-frames.ts";
import { decodeMessage, FrameError, FrameReader } from "../src/frames.ts";
import { peerFields, type Shared } from "./options.ts";

/**
 * A snapshot that brings less than this in the time of a stall does not come along: a byte now and
 * then would hold its place for ever.
 */
const MIN_SNAPSHOT_PROGRESS_BYTES = 64 * 1024;

/** What brings a snapshot: frames, or a body of etcd's peer protocol. */
export type SnapshotSource =
  | { readonly form: "quorate"; readonly stream: Http2Stream }
  | { readonly form: "etcd"; readonly stream: IncomingMessage };

/** The chunks of a source's stream; ending early leaves the stream as it is. */
function chunksOf({ stream }: SnapshotSource): AsyncIterable<Uint8Array> {
  return stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
}

function endStream(source: SnapshotSource | undefined): void {
  if (source?.form === "quorate") source.stream.close();
  else source?.stream.destroy();
}

export class SnapshotReceiver {
  readonly #shared: Shared;
  #snapshots = 0;
  /** The snapshot that comes from a member. */
  readonly #receiving = new Map<bigint, SnapshotSource>();

  constructor(shared: Shared) {
    this.#shared = shared;
  }

  /**
   * Hands a snapshot to the member as it comes.
   * @param answer called once: status 204 if the snapshot was taken over, otherwise with the reason
   */
  async receive(
    source: SnapshotSource,
    from: bigint,
    answer: (status: number, text: string) => void,
  ): Promise<void> {
    const { stream } = source;
    const { clock, listener, logger, observer, options } = this.#shared;
    // A member sends one at a time: an older one was given up by its sender, and may not have ended
    // here yet.
    endStream(this.#receiving.get(from));
    if (this.#snapshots >= options.maxSnapshots) {
      answer(503, "too many snapshots are being received");
      return;
    }
    this.#snapshots++;
    this.#receiving.set(from, source);
    const startedMs = clock.monotonicMs();
    let sizeBytes = 0;
    let fields: Record<string, string | number> = peerFields(this.#shared, from);
    observer.snapshotReceiveStarted(from);
    let taken = false;
    const { received } = observer.traffic(from);
    const frames = this.#parts(source, (bytes) => {
      sizeBytes += bytes;
      received.add(bytes);
    });
    try {
      const first = await frames.next();
      if (first.done === true) throw new FrameError("snapshot without a message");
      const message = decodeMessage(first.value);
      if (
        message.type !== raftpb.MessageType.MsgSnap ||
        message.from !== from ||
        message.to !== options.selfId
      ) {
        throw new FrameError("wrong raft message");
      }
      fields = { ...fields, "incoming-snapshot-index": message.snapshot?.metadata.index ?? 0 };
      logger.info("receiving database snapshot", fields);
      await listener.snapshotReceived({ message, body: frames, form: source.form });
      taken = true;
      const took = `${Math.round(clock.monotonicMs() - startedMs)}ms`;
      logger.info("received and saved database snapshot", {
        ...fields,
        "incoming-snapshot-size-bytes": sizeBytes,
        "download-took": took,
      });
      answer(204, "");
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.warn("failed to save incoming database snapshot", {
        ...fields,
        "incoming-snapshot-size-bytes": sizeBytes,
        error: reason,
      });
      observer.receiveFailed(from);
      answer(error instanceof FrameError ? 400 : 500, `failed to save snapshot (${reason})`);
    }
    await frames.return();
    stream.resume();
    this.#snapshots--;
    if (this.#receiving.get(from) === source) this.#receiving.delete(from);
    observer.snapshotReceiveEnded(from, taken, clock.monotonicMs() - startedMs, sizeBytes);
  }

  /**
   * The message of a snapshot, and then the parts of its body up to the end; throws FrameError when
   * it breaks off. As fast as they are taken, no faster.
   */
  async *#parts(
    source: SnapshotSource,
    received: (bytes: number) => void,
  ): AsyncGenerator<Uint8Array, void, void> {
    const { stream } = source;
    const { clock, options } = this.#shared;
    const reader =
      source.form === "etcd"
        ? new SnapshotBodyReader(options.maxMessageBytes)
        : new FrameReader(options.maxMessageBytes);
    const stallMs = options.snapshotStallTimeoutMs;
    const stalled = () => stream.destroy(new Error(`no progress for ${stallMs} ms`));
    let timer = clock.after(stallMs, stalled);
    let deadlineMs = clock.monotonicMs() + stallMs;
    let progressBytes = 0;
    const wait = (untilMs: number) => {
      timer.cancel();
      deadlineMs = untilMs;
      timer = clock.after(Math.max(0, untilMs - clock.monotonicMs()), stalled);
    };
    try {
      for await (const chunk of chunksOf(source)) {
        received(chunk.length);
        progressBytes += chunk.length;
        reader.push(chunk);
        for (let frame = reader.take(); frame !== undefined; frame = reader.take()) {
          if (frame.length === 0 && source.form === "quorate") return;
          // What this member needs for itself is no fault of the sender's.
          const sinceMs = clock.monotonicMs();
          timer.cancel();
          yield frame;
          wait(deadlineMs + clock.monotonicMs() - sinceMs);
        }
        if (progressBytes < MIN_SNAPSHOT_PROGRESS_BYTES) continue;
        wait(clock.monotonicMs() + stallMs);
        progressBytes = 0;
      }
    } catch (error) {
      if (error instanceof FrameError) throw error;
      throw new FrameError(
        `snapshot broke off: ${error instanceof Error ? error.message : String(error)}`,
      );
    } finally {
      timer.cancel();
    }
    // A body that was cut has thrown; what a database file lacks is seen in the file.
    if (reader instanceof SnapshotBodyReader && reader.hasMessage) return;
    throw new FrameError("snapshot broke off");
  }
}
