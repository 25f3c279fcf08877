/**
 * Sends one snapshot on its own connection: its message, the state in chunks, the mark of the end.
 * The answer says what became of it.
 */
import type { ServerHttp2Stream } from "node:http2";
import { alloc, raftpb, writeU32BE } from "@quorate/proto";
import { encodeWithLength } from "../src/etcd-frames.ts";
import { END_FRAME, FrameBatch, PREFIX_BYTES } from "../src/frames.ts";
import type { OutgoingSnapshot, SnapshotStream } from "../src/transport.ts";
import { type Dial, DialError, dial, type Link, watchedSession, watchLink } from "./dial.ts";
import { etcdRequestHeaders, SNAPSHOT_PATH } from "./headers.ts";
import { requestPeer } from "./http1-request.ts";
import { peerFields, type Shared } from "./options.ts";
import { type Answer, answerTo, answerToHttp1, openStream, refusedBy } from "./request.ts";
import { agreeToSend } from "./snapshot-fetch.ts";

/** A log line reports the progress this often. */
const PROGRESS_LOG_PERIOD_MS = 10_000;

/** Longer chunks are sent in parts. */
const MAX_CHUNK_BYTES = 1024 * 1024;

/** What a snapshot is written to: a stream of HTTP/2, or the body of a request. */
interface Sink {
  readonly destroyed: boolean;
  readonly closed?: boolean;
  write(bytes: Uint8Array): boolean;
  end(bytes?: Uint8Array): void;
  cork(): void;
  uncork(): void;
  once(event: "drain" | "close", listener: () => void): unknown;
  off(event: "drain" | "close", listener: () => void): unknown;
}

/** An open stream to the receiver. */
interface Way {
  readonly stream: Sink;
  /** What goes there, in the form that the receiver reads. */
  readonly snapshot: SnapshotStream;
  /** What the receiver says of the snapshot. */
  readonly answered: Promise<Answer>;
  /** Ends the stream, and a connection that was dialled for it. */
  end(): void;
}

export class SnapshotSender {
  readonly #shared: Shared;
  readonly #id: bigint;
  readonly #urls: readonly string[];
  readonly #snapshot: OutgoingSnapshot;
  readonly #isEtcd: boolean;
  readonly #offer: (message: raftpb.Message) => Promise<ServerHttp2Stream>;
  #dial: Dial<Link> | undefined;
  #stop: (() => void) | undefined;
  #stopped = false;
  #answered = false;
  #sentBytes = 0;

  /**
   * @param to the receiver; `isEtcd`: it speaks etcd's peer protocol
   * @param offer announces the snapshot to a peer that cannot be dialled; resolves with the peer's
   *   request for it, rejects with DialError if the peer does not come
   */
  constructor(
    shared: Shared,
    to: { readonly id: bigint; readonly urls: readonly string[]; readonly isEtcd: boolean },
    snapshot: OutgoingSnapshot,
    offer: (message: raftpb.Message) => Promise<ServerHttp2Stream>,
  ) {
    this.#shared = shared;
    this.#offer = offer;
    this.#id = to.id;
    this.#urls = to.urls;
    this.#isEtcd = to.isEtcd;
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
      ...peerFields(this.#shared, this.#id),
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
    let body = this.#snapshot.body[Symbol.asyncIterator]();
    try {
      const way = await this.#open();
      const { answered, end } = way;
      body = way.snapshot.body[Symbol.asyncIterator]();
      this.#stop = end;
      if (this.#stopped) end();
      try {
        // A peer that refuses may say so before the end; then writing on is of no use.
        const settled = answered.finally(() => {
          this.#answered = true;
        });
        settled.catch(() => {});
        await this.#write(way, body);
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
    const snapshot = this.#snapshot;
    if (this.#isEtcd) return this.#openEtcd();
    try {
      const link = await this.#connect();
      watchLink(this.#shared, watchedSession(link), () => {});
      const stream = openStream(this.#shared, link.session, this.#id, SNAPSHOT_PATH);
      return { stream, snapshot, answered: answerTo(stream), end: () => link.session.destroy() };
    } catch (error) {
      if (this.#stopped || !(error instanceof DialError)) throw error;
      const stream = await this.#offer(this.#snapshot.message).catch(() => {
        throw error;
      });
      const answered = agreeToSend(this.#shared, stream);
      return { stream, snapshot, answered, end: () => stream.close() };
    }
  }

  /** A request to a member of etcd, by the first URL: Raft begins again where it is no good. */
  async #openEtcd(): Promise<Way> {
    const { options } = this.#shared;
    const snapshot = await this.#snapshot.forEtcd?.();
    if (snapshot === undefined) throw new DialError("Failed", "there is no file for etcd");
    const asker = {
      tls: options.tls?.current,
      localAddress: options.localAddress,
      kept: undefined,
    };
    const stream = requestPeer(asker, this.#urls[0] ?? "", {
      method: "POST",
      path: SNAPSHOT_PATH,
      headers: {
        ...etcdRequestHeaders(options, undefined),
        "content-type": "application/octet-stream",
      },
    });
    return { stream, snapshot, answered: answerToHttp1(stream), end: () => stream.destroy() };
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

  async #write({ stream, snapshot }: Way, body: AsyncIterator<Uint8Array>): Promise<void> {
    const isFramed = snapshot.form !== "etcd";
    if (isFramed) {
      const batch = new FrameBatch();
      batch.add(raftpb.Message.encode(snapshot.message));
      for (const piece of batch.take()) await this.#writePiece(stream, piece);
    } else await this.#writePiece(stream, encodeWithLength(snapshot.message));
    for (
      let chunk = await body.next();
      chunk.done !== true && !this.#answered;
      chunk = await body.next()
    ) {
      for (let at = 0; at < chunk.value.length && !this.#answered; at += MAX_CHUNK_BYTES) {
        const part = chunk.value.subarray(at, at + MAX_CHUNK_BYTES);
        if (isFramed) await this.#writeChunk(stream, part);
        else await this.#writePiece(stream, part);
      }
    }
    if (this.#answered) return;
    if (isFramed) stream.end(END_FRAME);
    else stream.end();
  }

  async #writeChunk(stream: Sink, chunk: Uint8Array): Promise<void> {
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
  async #writePiece(stream: Sink, piece: Uint8Array): Promise<void> {
    if (stream.destroyed || stream.closed === true) return;
    this.#sentBytes += piece.length;
    this.#shared.observer.traffic(this.#id).sent.add(piece.length);
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
