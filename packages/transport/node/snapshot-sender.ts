/**
 * Sends one snapshot on its own connection: its message, the state in chunks, the mark of the end.
 * The answer says what became of it.
 */
import type { Http2Stream, ServerHttp2Stream } from "node:http2";
import { alloc, idToHex, raftpb, writeU32BE } from "@quorate/proto";
import { END_FRAME, FrameBatch, PREFIX_BYTES } from "../src/frames.ts";
import type { SnapshotStream } from "../src/transport.ts";
import { type Dial, DialError, dial, type Link, watchedSession, watchLink } from "./dial.ts";
import { SNAPSHOT_PATH } from "./headers.ts";
import type { Shared } from "./options.ts";
import { type Answer, answerTo, openStream, refusedBy } from "./request.ts";
import { agreeToSend } from "./snapshot-fetch.ts";

/** A log line reports the progress this often. */
const PROGRESS_LOG_PERIOD_MS = 10_000;

/** Longer chunks are sent in parts. */
const MAX_CHUNK_BYTES = 1024 * 1024;

/** An open stream to the receiver. */
interface Way {
  readonly stream: Http2Stream;
  /** What the receiver says of the snapshot. */
  readonly answered: Promise<Answer>;
  /** Ends the stream, and a connection that was dialled for it. */
  end(): void;
}

export class SnapshotSender {
  readonly #shared: Shared;
  readonly #id: bigint;
  readonly #urls: readonly string[];
  readonly #snapshot: SnapshotStream;
  readonly #offer: (message: raftpb.Message) => Promise<ServerHttp2Stream>;
  #dial: Dial<Link> | undefined;
  #stop: (() => void) | undefined;
  #stopped = false;
  #answered = false;
  #sentBytes = 0;

  /**
   * @param offer announces the snapshot to a peer that cannot be dialled; resolves with the peer's
   *   request for it, rejects with DialError if the peer does not come
   */
  constructor(
    shared: Shared,
    { id, urls }: { readonly id: bigint; readonly urls: readonly string[] },
    snapshot: SnapshotStream,
    offer: (message: raftpb.Message) => Promise<ServerHttp2Stream>,
  ) {
    this.#shared = shared;
    this.#offer = offer;
    this.#id = id;
    this.#urls = urls;
    this.#snapshot = snapshot;
  }

  /** Gives up; `run` then resolves with false. */
  stop(): void {
    this.#stopped = true;
    this.#dial?.stop();
    this.#stop?.();
  }

  /**
   * Sends it; true if the peer took it over. Never rejects. The body is read to its end or returned
   * early.
   */
  async run(): Promise<boolean> {
    const { clock, logger, observer } = this.#shared;
    const startedMs = clock.monotonicMs();
    const fields = {
      "local-member-id": idToHex(this.#shared.options.selfId),
      "remote-peer-id": idToHex(this.#id),
      "snapshot-index": this.#snapshot.message.snapshot?.metadata.index ?? 0,
    };
    observer.snapshotSendStarted(this.#id);
    logger.info("sending database snapshot", fields);
    const progress = clock.every(PROGRESS_LOG_PERIOD_MS, () => {
      logger.info("still sending database snapshot", { ...fields, bytes: this.#sentBytes });
    });
    let taken = false;
    try {
      await this.#send();
      taken = true;
      logger.info("sent database snapshot", {
        ...fields,
        bytes: this.#sentBytes,
        took: `${Math.round(clock.monotonicMs() - startedMs)}ms`,
      });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.warn("failed to send database snapshot", {
        ...fields,
        bytes: this.#sentBytes,
        error: reason,
      });
    }
    progress.cancel();
    observer.snapshotSendEnded(this.#id, taken, clock.monotonicMs() - startedMs, this.#sentBytes);
    return taken;
  }

  async #send(): Promise<void> {
    const body = this.#snapshot.body[Symbol.asyncIterator]();
    try {
      const { stream, answered, end } = await this.#open();
      this.#stop = end;
      if (this.#stopped) end();
      try {
        // A peer that refuses may say so before the end; then writing on is of no use.
        const settled = answered.finally(() => {
          this.#answered = true;
        });
        settled.catch(() => {});
        await this.#write(stream, body);
        const answer = await this.#withTimeout(
          settled,
          this.#shared.options.snapshotInstallTimeoutMs,
          "the peer does not answer",
        );
        if (answer.status >= 300) throw refusedBy(this.#shared, answer);
      } finally {
        end();
      }
    } finally {
      await body.return?.().catch(() => {});
    }
  }

  /**
   * A stream to the peer: dialled, or else one that the peer dials when it is offered the snapshot.
   */
  async #open(): Promise<Way> {
    try {
      const link = await this.#connect();
      watchLink(this.#shared, watchedSession(link), () => {});
      const stream = openStream(this.#shared, link.session, this.#id, SNAPSHOT_PATH);
      return { stream, answered: answerTo(stream), end: () => link.session.destroy() };
    } catch (error) {
      if (this.#stopped || !(error instanceof DialError)) throw error;
      const stream = await this.#offer(this.#snapshot.message).catch(() => {
        throw error;
      });
      return { stream, answered: agreeToSend(this.#shared, stream), end: () => stream.close() };
    }
  }

  /** A link by the first URL that works. */
  async #connect() {
    let failure = new DialError("Failed", "the peer has no URLs");
    for (const url of this.#urls) {
      if (this.#stopped) break;
      try {
        this.#dial = dial(this.#shared, url, this.#shared.options.dialTimeoutMs);
        return await this.#dial.link;
      } catch (error) {
        if (!(error instanceof DialError)) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  async #write(stream: Http2Stream, body: AsyncIterator<Uint8Array>): Promise<void> {
    const batch = new FrameBatch();
    batch.add(raftpb.Message.encode(this.#snapshot.message));
    for (const piece of batch.take()) await this.#writePiece(stream, piece);
    for (
      let chunk = await body.next();
      chunk.done !== true && !this.#answered;
      chunk = await body.next()
    ) {
      for (let at = 0; at < chunk.value.length && !this.#answered; at += MAX_CHUNK_BYTES) {
        await this.#writeChunk(stream, chunk.value.subarray(at, at + MAX_CHUNK_BYTES));
      }
    }
    if (!this.#answered) stream.end(END_FRAME);
  }

  async #writeChunk(stream: Http2Stream, chunk: Uint8Array): Promise<void> {
    const prefix = alloc(PREFIX_BYTES);
    writeU32BE(prefix, chunk.length, 0);
    stream.cork();
    stream.write(prefix);
    const written = this.#writePiece(stream, chunk);
    stream.uncork();
    await written;
  }

  /**
   * Writes, and waits until the stream has drained. Rejects when it makes no progress; of one
   * that is closed, the answer says why.
   */
  async #writePiece(stream: Http2Stream, piece: Uint8Array): Promise<void> {
    if (stream.destroyed || stream.closed) return;
    this.#sentBytes += piece.length;
    this.#shared.observer.sent(this.#id, piece.length);
    if (stream.write(piece)) return;
    let done: () => void = () => {};
    const free = new Promise<void>((resolve) => {
      done = resolve;
      stream.once("drain", done);
      stream.once("close", done);
    });
    await this.#withTimeout(
      free,
      this.#shared.options.snapshotStallTimeoutMs,
      "the peer takes no more of the snapshot",
    );
    stream.off("drain", done);
    stream.off("close", done);
  }

  async #withTimeout<T>(work: Promise<T>, timeoutMs: number, text: string): Promise<T> {
    let timer: { cancel(): void } | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = this.#shared.clock.after(timeoutMs, () => reject(new DialError("Timeout", text)));
    });
    return Promise.race([work, late]).finally(() => timer?.cancel());
  }
}
