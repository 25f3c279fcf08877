/**
 * One long-lived stream of messages to a peer, on a connection of its own. It stands in one of four
 * states:
 *
 *   waiting --(time, or a sign of life)--> dialling --(peer agrees)--> open --(lost)--> waiting
 *      ^----------------(no URL works)-----------'                       any --> closed
 *
 * While the peer cannot be dialled, messages go back on the stream that the peer has dialled, if
 * there is one: one direction of dialling is enough, as in etcd (rafthttp: a receiver dials its
 * streams). Such a stream is not used before the first attempt to dial has failed: a change of
 * connection may change the order of messages.
 *
 * While it dials, messages wait in the queue; while it waits, they are dropped: what is older than
 * the next attempt would be stale anyway. The queue is bounded by count and by bytes. Once it is
 * full, all is dropped until half of it has left: a gap in a row of appends is worth nothing to the
 * peer, and Raft, which is notified, falls back to a probe.
 */
import type { Socket } from "node:net";
import { Backoff, type Logger, type Timer } from "@quorate/host";
import { idToHex, raftpb } from "@quorate/proto";
import { type ChannelKind, FrameBatch, FrameError, PREFIX_BYTES } from "../src/frames.ts";
import { RareLog } from "../src/rare-log.ts";
import { type Dial, DialError, dialSocket, parsePeerUrl, watchLink } from "./dial.ts";
import { STREAM_PATH } from "./headers.ts";
import { peerFields, type Shared, type Traffic } from "./options.ts";
import { refusedBy } from "./request.ts";
import { Carrier, MessageReader, type OutgoingStream, requestStream } from "./stream.ts";

/** The calls of a channel to its peer. */
export interface ChannelListener {
  /** The stream is open: the peer has agreed. */
  opened(kind: ChannelKind): void;
  /** It was open and is not any more. */
  lost(kind: ChannelKind): void;
  roundTrip(kind: ChannelKind, ms: number): void;
  /** Messages are being lost; once for each lost connection, failed attempt or full queue. */
  dropping(kind: ChannelKind): void;
  /** The peer has sent messages back on this stream. @param url where it was dialled */
  received(messages: readonly raftpb.Message[], url: string): void;
  /**
   * The peer speaks etcd's protocol. Returns whether it is spoken to in that: the channel has been
   * closed then.
   */
  speaksEtcd(): boolean;
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
  readonly #traffic: Traffic;
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
  /** The stream that was dialled, once it is open, and the last one that the peer has dialled. */
  #own: Carrier | undefined;
  #lent: Carrier | undefined;
  /** The one of them that messages are written to. */
  #carrier: Carrier | undefined;
  /** Whether the last attempt to dial failed, or its connection is lost. */
  #ownFailed = false;
  #openUrl = "";
  #rareLog: RareLog;
  readonly #readLog: RareLog;
  #full = false;
  #reportedDropping = false;

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
    this.#traffic = shared.observer.traffic(id);
    this.#rareLog = new RareLog(shared.clock);
    this.#readLog = new RareLog(shared.clock);
    const options = { quickMs: quickRetryMs, firstMs: leastRetryMs, mostMs: mostRetryMs };
    this.#backoff = new Backoff(options, shared.random.fork(`${idToHex(id)} ${kind}`));
  }

  /** Messages that wait, and their bytes: in the queue or in the stream. */
  get queued(): { readonly messages: number; readonly bytes: number } {
    const { count, sizeBytes } = this.#batch;
    const { queuedMessages = 0, queuedBytes = 0 } = this.#carrier ?? {};
    return { messages: count + queuedMessages, bytes: sizeBytes + queuedBytes };
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
    const isReady = this.#carrier !== undefined || this.#state === "dialling";
    if (!isReady || this.#state === "closed") {
      for (const message of messages) this.#drop(message);
      return;
    }
    for (const message of messages) this.#enqueue(message);
    this.#flush();
  }

  /**
   * The peer has dialled a stream of this kind and reads messages on it: for when it cannot be
   * dialled.
   */
  lend(carrier: Carrier): void {
    if (this.#state === "closed" || carrier.socket.destroyed) return;
    this.#lent = carrier;
    carrier.socket.on("close", () => {
      if (this.#lent !== carrier) return;
      this.#lent = undefined;
      this.#choose();
    });
    this.#watch(carrier);
    this.#choose();
  }

  /**
   * Sends a message if the peer cannot be dialled and has dialled this member. The message has to
   * be short, and is not queued behind a full one.
   * @returns whether the message is on its way
   */
  sendBack(message: raftpb.Message): boolean {
    if (this.#own !== undefined || this.#carrier === undefined || this.#full) return false;
    this.send([message]);
    return true;
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
    const queued = this.queued;
    const bytes = queued.bytes + PREFIX_BYTES + encoded.length;
    if (queued.messages > 0 && (queued.messages >= maxQueuedMessages || bytes > maxQueuedBytes)) {
      this.#full = true;
      this.#logger.warn("dropped internal Raft message since sending buffer is full", {
        ...this.#fields(),
        "message-type": typeName(message.type),
        "queued-messages": queued.messages,
        "queued-bytes": queued.bytes,
      });
      this.#drop(message);
      return;
    }
    this.#batch.add(encoded);
  }

  #flush(): void {
    const carrier = this.#carrier;
    if (carrier === undefined || this.#batch.count === 0) return;
    try {
      this.#traffic.sent.add(carrier.write(this.#batch, () => this.#left(carrier)));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#logger.warn("failed to send Raft messages", {
        ...this.#fields(),
        error: error.message,
      });
      carrier.socket.destroy();
    }
  }

  /** Messages have left for the kernel. */
  #left(carrier: Carrier): void {
    if (carrier !== this.#carrier || !this.#full) return;
    const { maxQueuedMessages, maxQueuedBytes } = this.#shared.options;
    if (carrier.queuedMessages * 2 > maxQueuedMessages || carrier.queuedBytes * 2 > maxQueuedBytes)
      return;
    this.#full = false;
    this.#reportedDropping = false;
  }

  /**
   * Decides which stream messages are written to from now on: the one that was dialled, if it is
   * open.
   */
  #choose(): void {
    const before = this.#carrier;
    const carrier = this.#own ?? (this.#ownFailed ? this.#lent : undefined);
    if (carrier === before || this.#state === "closed") return;
    this.#carrier = carrier;
    this.#full = false;
    if (carrier === undefined) {
      this.#clearQueue();
      this.#listener.lost(this.#kind);
      this.#reportDropping();
      return;
    }
    this.#reportedDropping = false;
    if (before === undefined) this.#listener.opened(this.#kind);
    // What was on its way on a connection that is lost is lost too.
    else if (before.socket.destroyed) this.#listener.dropping(this.#kind);
    this.#flush();
  }

  /** Pings the other side for as long as the stream lasts. */
  #watch(carrier: Carrier): void {
    const { socket, ping } = carrier;
    const watched = {
      socket,
      isGone: () => socket.destroyed,
      ping,
      giveUp: () => void socket.destroy(),
    };
    watchLink(this.#shared, watched, (ms) => {
      if (carrier === this.#carrier) this.#listener.roundTrip(this.#kind, ms);
    });
  }

  #drop(message: raftpb.Message): void {
    this.#shared.observer.dropped(this.#id, message.type, 1);
    this.#reportDropping();
  }

  #reportDropping(): void {
    if (this.#reportedDropping) return;
    this.#reportedDropping = true;
    this.#listener.dropping(this.#kind);
  }

  #clearQueue(): void {
    this.#batch.take();
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
      const received = this.#readerOf(socket, url);
      const request = { socket, to: this.#id, path: STREAM_PATH + this.#kind, secure, received };
      const asked = requestStream(this.#shared, request);
      const stream = await asked.finally(() => timer.cancel());
      if (stream.answer.status !== 200) throw refusedBy(this.#shared, stream.answer);
      this.#open(url, socket, stream);
    } catch (error) {
      this.#socket?.destroy();
      this.#failed(error instanceof DialError ? error : new DialError("Failed", String(error)));
    }
  }

  /** What reads the messages that the peer sends back. */
  #readerOf(socket: Socket, url: string): (bytes: Uint8Array) => void {
    const parts = { shared: this.#shared, rareLog: this.#readLog, connection: socket };
    const reader = new MessageReader(parts, this.#id, {
      received: (messages) => this.#listener.received(messages, url),
    });
    return (bytes) => {
      if (this.#state !== "closed") reader.take(bytes);
    };
  }

  #open(url: string, socket: Socket, stream: OutgoingStream): void {
    this.#dial = undefined;
    if (this.#state === "closed" || socket.destroyed || !this.#urls.includes(url))
      throw new DialError("Stopped", "connection is gone");
    this.#state = "open";
    this.#openUrl = url;
    this.#failedUrls = 0;
    this.#rareLog = new RareLog(this.#shared.clock);
    this.#backoff.reset();
    socket.on("close", () => this.#lost(socket));
    // The peer ends its side only to end the connection.
    socket.on("end", () => socket.destroy());
    this.#own = new Carrier(socket, stream);
    this.#ownFailed = false;
    this.#watch(this.#own);
    this.#logger.info("established TCP streaming connection with remote peer", {
      ...this.#fields(),
      url,
    });
    this.#choose();
  }

  #lost(socket: Socket): void {
    if (socket !== this.#socket) return;
    this.#socket = undefined;
    this.#own = undefined;
    this.#ownFailed = true;
    if (this.#state === "closed") {
      this.#clearQueue();
      return;
    }
    this.#logger.warn("lost TCP streaming connection with remote peer", {
      ...this.#fields(),
      url: this.#openUrl,
    });
    this.#choose();
    this.#waitAndRetry();
  }

  #failed(error: DialError): void {
    this.#dial = undefined;
    this.#socket = undefined;
    if (this.#state === "closed") return;
    if (error.code === "Etcd" && this.#listener.speaksEtcd()) return;
    this.#logFailure(error);
    this.#picked = this.#urls.length === 0 ? 0 : (this.#picked + 1) % this.#urls.length;
    this.#failedUrls++;
    if (error.code !== "Removed" && this.#failedUrls < this.#urls.length) {
      void this.#connect();
      return;
    }
    this.#ownFailed = true;
    this.#choose();
    if (this.#carrier === undefined) {
      const hadMessages = this.#batch.count > 0;
      this.#clearQueue();
      this.#reportedDropping = false;
      if (hadMessages) this.#reportDropping();
    }
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
    return { ...peerFields(this.#shared, this.#id), "stream-writer-type": this.#kind };
  }
}
