/**
 * One long-lived stream of messages to a peer, on a connection of its own. It stands in one of four
 * states:
 *
 *   waiting --(time, or a sign of life)--> dialling --(peer agrees)--> open --(lost)--> waiting
 *      ^----------------(no URL works)-----------'                       any --> closed
 *
 * While it dials, messages wait in the queue; while it waits, they are dropped: what is older than
 * the next attempt would be stale anyway. The queue is bounded by count and by bytes. Once it is
 * full, all is dropped until half of it has left: a gap in a row of appends is worth nothing to the
 * peer, and Raft, who is told, starts over with a probe.
 */
import type { Socket } from "node:net";
import type { Logger, Timer } from "@quorate/host";
import { idToHex, raftpb } from "@quorate/proto";
import { Backoff } from "../src/backoff.ts";
import { FrameBatch, FrameError, PREFIX_BYTES } from "../src/frames.ts";
import { RareLog } from "../src/rare-log.ts";
import { FRAME_HEAD_BYTES } from "../src/tunnel.ts";
import { type Dial, DialError, dialSocket, parsePeerUrl, watchLink } from "./dial.ts";
import { STREAM_PATH } from "./headers.ts";
import type { Shared } from "./options.ts";
import { refusedBy } from "./request.ts";
import { type OutgoingStream, requestStream } from "./stream.ts";

/**
 * "urgent" for what is small and keeps the cluster together (votes, heartbeats, acknowledgements),
 * "bulk" for entries.
 */
export type ChannelKind = "urgent" | "bulk";

/** What a channel tells its peer. */
export interface ChannelListener {
  /** The stream is open: the peer has agreed. */
  opened(kind: ChannelKind): void;
  /** It was open and is not any more. */
  lost(kind: ChannelKind): void;
  roundTrip(kind: ChannelKind, ms: number): void;
  /** Messages are being lost; once for each lost connection, failed attempt or full queue. */
  dropping(kind: ChannelKind): void;
}

function typeName(type: raftpb.MessageType): string {
  return (
    Object.entries(raftpb.MessageType).find(([, value]) => value === type)?.[0] ?? String(type)
  );
}

export class Channel {
  readonly #shared: Shared;
  readonly #id: bigint;
  readonly #kind: ChannelKind;
  readonly #listener: ChannelListener;
  readonly #logger: Logger;
  readonly #backoff: Backoff;
  readonly #batch = new FrameBatch();
  #urls: readonly string[];
  /** Index of the URL to dial next, and how many have failed in a row. */
  #picked = 0;
  #failedUrls = 0;
  #state: "waiting" | "dialling" | "open" | "closed" = "waiting";
  #retry: Timer | undefined;
  #dial: Dial<Socket> | undefined;
  /** The connection, also while the peer has not agreed yet. */
  #socket: Socket | undefined;
  #stream: OutgoingStream | undefined;
  #openUrl = "";
  #rareLog: RareLog;
  #queuedMessages = 0;
  #queuedBytes = 0;
  #full = false;
  #toldDropping = false;

  constructor(
    shared: Shared,
    id: bigint,
    urls: readonly string[],
    kind: ChannelKind,
    listener: ChannelListener,
  ) {
    const { quickRetryMs, leastRetryMs, mostRetryMs } = shared.options;
    this.#shared = shared;
    this.#id = id;
    this.#urls = urls;
    this.#kind = kind;
    this.#listener = listener;
    this.#logger = shared.logger;
    this.#rareLog = new RareLog(shared.clock);
    const options = { quickMs: quickRetryMs, leastMs: leastRetryMs, mostMs: mostRetryMs };
    this.#backoff = new Backoff(options, shared.random.fork(`${idToHex(id)} ${kind}`));
  }

  /** Messages that wait, and their bytes: in the queue or in the stream. */
  get queued(): { readonly messages: number; readonly bytes: number } {
    return { messages: this.#queuedMessages, bytes: this.#queuedBytes };
  }

  /**
   * Dials now if it is waiting to; the peer has shown that it is there, or is wanted for the first
   * time.
   */
  wake(): void {
    if (this.#state !== "waiting") return;
    this.#retry?.cancel();
    this.#failedUrls = 0;
    void this.#connect();
  }

  /** Sends what it can as one write. */
  send(messages: readonly raftpb.Message[]): void {
    if (this.#state === "waiting" || this.#state === "closed") {
      for (const message of messages) this.#drop(message);
      return;
    }
    for (const message of messages) this.#enqueue(message);
    if (this.#state === "open") this.#flush();
  }

  /** Goes on with other URLs; a connection to one that is not among them is given up. */
  update(urls: readonly string[]): void {
    this.#urls = urls;
    this.#picked = 0;
    if (this.#state === "open" && !urls.includes(this.#openUrl)) this.#socket?.destroy();
    else if (this.#state === "dialling") this.#dial?.stop();
    else this.wake();
  }

  /**
   * More URLs to dial when those before do not work; what is open or dialled is left alone. @param
   * urls those before, and then more
   */
  mayDial(urls: readonly string[]): void {
    this.#urls = urls;
    this.wake();
  }

  /** Drops the connection and all that waits. */
  close(): void {
    this.#state = "closed";
    this.#retry?.cancel();
    this.#dial?.stop();
    this.#socket?.destroy();
    this.#clearQueue();
  }

  #enqueue(message: raftpb.Message): void {
    if (this.#full) {
      this.#drop(message);
      return;
    }
    const encoded = raftpb.Message.encode(message);
    const { maxQueuedMessages, maxQueuedBytes } = this.#shared.options;
    const bytes = this.#queuedBytes + PREFIX_BYTES + encoded.length;
    if (
      this.#queuedMessages > 0 &&
      (this.#queuedMessages >= maxQueuedMessages || bytes > maxQueuedBytes)
    ) {
      this.#full = true;
      this.#logger.warn("dropped internal Raft message since sending buffer is full", {
        ...this.#fields(),
        "message-type": typeName(message.type),
        "queued-messages": this.#queuedMessages,
        "queued-bytes": this.#queuedBytes,
      });
      this.#drop(message);
      return;
    }
    this.#batch.add(encoded);
    this.#queuedMessages++;
    this.#queuedBytes = bytes;
  }

  #flush(): void {
    const socket = this.#socket;
    const stream = this.#stream;
    const messages = this.#batch.count;
    if (socket === undefined || stream === undefined || messages === 0) return;
    const bytes = this.#batch.sizeBytes;
    const pieces = this.#framed(stream, this.#batch.take(FRAME_HEAD_BYTES), bytes);
    if (pieces === undefined) {
      socket.destroy();
      return;
    }
    const last = pieces.length - 1;
    if (last > 0) socket.cork();
    for (let i = 0; i < last; i++) socket.write(pieces[i]);
    socket.write(pieces[last], () => this.#left(socket, messages, bytes));
    if (last > 0) socket.uncork();
    this.#shared.observer.sent(this.#id, bytes);
  }

  /**
   * The pieces in HTTP/2's frames, or undefined if the peer has closed its window: it does not
   * receive as members do.
   */
  #framed(stream: OutgoingStream, pieces: Uint8Array[], bytes: number): Uint8Array[] | undefined {
    try {
      return stream.wrap(pieces, bytes);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#logger.warn("failed to send Raft messages", {
        ...this.#fields(),
        error: error.message,
      });
      return undefined;
    }
  }

  /** Messages have left for the kernel. */
  #left(socket: Socket, messages: number, bytes: number): void {
    if (socket !== this.#socket) return;
    this.#queuedMessages -= messages;
    this.#queuedBytes -= bytes;
    const { maxQueuedMessages, maxQueuedBytes } = this.#shared.options;
    if (
      !this.#full ||
      this.#queuedMessages * 2 > maxQueuedMessages ||
      this.#queuedBytes * 2 > maxQueuedBytes
    )
      return;
    this.#full = false;
    this.#toldDropping = false;
  }

  #drop(message: raftpb.Message): void {
    this.#shared.observer.dropped(this.#id, message.type, 1);
    this.#tellDropping();
  }

  #tellDropping(): void {
    if (this.#toldDropping) return;
    this.#toldDropping = true;
    this.#listener.dropping(this.#kind);
  }

  #clearQueue(): void {
    this.#batch.take();
    this.#queuedMessages = 0;
    this.#queuedBytes = 0;
    this.#full = false;
  }

  async #connect(): Promise<void> {
    this.#state = "dialling";
    const { clock, options } = this.#shared;
    const url = this.#urls[this.#picked % this.#urls.length] ?? "";
    const startedMs = clock.monotonicMs();
    try {
      const dialled = dialSocket(this.#shared, url, options.dialTimeoutMs);
      this.#dial = dialled;
      const socket = await dialled.link;
      this.#socket = socket;
      const leftMs = Math.max(1, options.dialTimeoutMs - (clock.monotonicMs() - startedMs));
      const timer = clock.after(leftMs, () => socket.destroy());
      this.#dial = { link: dialled.link, stop: () => socket.destroy() };
      const secure = parsePeerUrl(url)?.secure === true;
      const asked = requestStream(this.#shared, socket, this.#id, STREAM_PATH + this.#kind, secure);
      const stream = await asked.finally(() => timer.cancel());
      if (stream.answer.status !== 200) throw refusedBy(this.#shared, stream.answer);
      this.#open(url, socket, stream);
    } catch (error) {
      this.#socket?.destroy();
      this.#failed(error instanceof DialError ? error : new DialError("failed", String(error)));
    }
  }

  #open(url: string, socket: Socket, stream: OutgoingStream): void {
    this.#dial = undefined;
    if (this.#state === "closed" || socket.destroyed || !this.#urls.includes(url))
      throw new DialError("stopped", "connection is gone");
    this.#state = "open";
    this.#stream = stream;
    this.#openUrl = url;
    this.#failedUrls = 0;
    this.#rareLog = new RareLog(this.#shared.clock);
    this.#toldDropping = false;
    this.#backoff.reset();
    socket.on("close", () => this.#lost(socket));
    // The peer ends its side only to end the connection.
    socket.on("end", () => socket.destroy());
    const { ping } = stream;
    const watched = {
      socket,
      isGone: () => socket.destroyed,
      ping,
      giveUp: () => void socket.destroy(),
    };
    watchLink(this.#shared, watched, (ms) => this.#listener.roundTrip(this.#kind, ms));
    this.#logger.info("established TCP streaming connection with remote peer", {
      ...this.#fields(),
      url,
    });
    this.#listener.opened(this.#kind);
    this.#flush();
  }

  #lost(socket: Socket): void {
    if (socket !== this.#socket) return;
    this.#socket = undefined;
    this.#stream = undefined;
    this.#clearQueue();
    if (this.#state === "closed") return;
    this.#logger.warn("lost TCP streaming connection with remote peer", {
      ...this.#fields(),
      url: this.#openUrl,
    });
    this.#listener.lost(this.#kind);
    this.#tellDropping();
    this.#waitAndRetry();
  }

  #failed(error: DialError): void {
    this.#dial = undefined;
    this.#socket = undefined;
    if (this.#state === "closed") return;
    this.#logFailure(error);
    this.#picked = this.#urls.length === 0 ? 0 : (this.#picked + 1) % this.#urls.length;
    this.#failedUrls++;
    if (error.code !== "removed" && this.#failedUrls < this.#urls.length) {
      void this.#connect();
      return;
    }
    const hadMessages = this.#batch.count > 0;
    this.#clearQueue();
    this.#toldDropping = false;
    if (hadMessages) this.#tellDropping();
    this.#waitAndRetry();
  }

  #waitAndRetry(): void {
    this.#state = "waiting";
    this.#failedUrls = 0;
    this.#retry = this.#shared.clock.after(this.#backoff.nextMs(), () => this.wake());
  }

  /** Loud when it is news, quiet when it is the same again. */
  #logFailure(error: DialError): void {
    const fields = { ...this.#fields(), ...error.fields, error: error.message };
    if (this.#rareLog.allows(error.message)) this.#logger.warn(error.headline, fields);
    else this.#logger.debug(error.headline, fields);
  }

  #fields(): { readonly [name: string]: string } {
    return {
      "local-member-id": idToHex(this.#shared.options.selfId),
      "remote-peer-id": idToHex(this.#id),
      "stream-writer-type": this.#kind,
    };
  }
}
