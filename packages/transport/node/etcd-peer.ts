/**
 * One other member that speaks etcd's peer protocol. Each side dials the streams that it reads
 * (etcd-reader.ts) and writes on those that the other has dialled (etcd-writer.ts):
 *
 *     GET /raft/stream/message/ID  -->            ID: the reader; all messages
 *     GET /raft/stream/msgapp/ID  -->            appends, if this stream is there
 *                                 <-- 200, messages without end
 *     POST /raft  -->  204                  one message, while the receiver has no stream here
 *     POST /raft/snapshot  -->  204         a message and a database file (snapshot-sender.ts)
 *
 * Messages keep their order within a stream alone. Those that are posted come in any order, and
 * after later ones on a stream that was opened meanwhile; appends overtake the other stream. Raft
 * takes them in any order.
 */
import type { ServerResponse } from "node:http";
import { raftpb } from "@quorate/proto";
import { ETCD_STREAMS, type EtcdStream } from "../src/etcd-frames.ts";
import { EtcdReader } from "./etcd-reader.ts";
import { EtcdWriter } from "./etcd-writer.ts";
import { etcdRequestHeaders, RefusalText, speaksQuorate } from "./headers.ts";
import { requestPeer } from "./http1-request.ts";
import type { Shared } from "./options.ts";
import { answerToHttp1, refusedBy } from "./request.ts";

/** Single messages that are under way to one peer (etcd: pipelineBufSize). */
const MAX_POSTS = 64;

/** The calls of an etcd peer to its owner. */
export interface EtcdPeerListener {
  /** Messages come from the peer. */
  etcdOpened(): void;
  /** They came, and do not any more. */
  etcdLost(): void;
  /** Messages are being lost; once for each lost connection or full queue. */
  dropping(): void;
  etcdReceived(messages: readonly raftpb.Message[]): void;
  etcdRoundTrip(ms: number): void;
  /** It is a member of Quorate: this is of no use, and to be closed. */
  speaksQuorate(): void;
}

export class EtcdPeer {
  readonly #shared: Shared;
  readonly #id: bigint;
  readonly #listener: EtcdPeerListener;
  readonly #readers: readonly EtcdReader[];
  readonly #writers = new Map<EtcdStream, EtcdWriter>();
  readonly #posts = new Set<AbortController>();
  #urls: readonly string[];
  /** The URL that is posted to next, among `#urls`. */
  #picked = 0;
  #openStreams = 0;
  /** A message that was posted is lost, and was reported; the next is not, before one arrives. */
  #postsFail = false;
  #closed = false;

  constructor(shared: Shared, id: bigint, urls: readonly string[], listener: EtcdPeerListener) {
    this.#shared = shared;
    this.#id = id;
    this.#urls = urls;
    this.#listener = listener;
    this.#readers = ETCD_STREAMS.map(
      (stream) =>
        new EtcdReader(
          shared,
          { id, urls, stream },
          {
            opened: (tookMs) => this.#opened(tookMs),
            lost: () => this.#lost(),
            received: (messages) => listener.etcdReceived(messages),
            speaksQuorate: () => listener.speaksQuorate(),
          },
        ),
    );
  }

  /** Dials what is not open. */
  wake(): void {
    for (const reader of this.#readers) reader.wake();
  }

  /** Goes on with other URLs. */
  update(urls: readonly string[]): void {
    this.#urls = urls;
    this.#picked = 0;
    for (const reader of this.#readers) reader.update(urls);
  }

  /** The peer reads a stream here: messages go there from now on. */
  attach(stream: EtcdStream, response: ServerResponse): void {
    this.#writers.get(stream)?.close();
    const writer = new EtcdWriter(
      this.#shared,
      { id: this.#id, stream, response },
      {
        dropping: () => this.#listener.dropping(),
        closed: () => {
          if (this.#writers.get(stream) !== writer) return;
          this.#writers.delete(stream);
          if (!this.#closed) this.#listener.dropping();
        },
      },
    );
    this.#writers.set(stream, writer);
    this.#postsFail = false;
  }

  /** Messages and bytes that wait in the streams. */
  get queued(): { readonly messages: number; readonly bytes: number } {
    let messages = this.#posts.size;
    let bytes = 0;
    for (const writer of this.#writers.values()) {
      messages += writer.queuedMessages;
      bytes += writer.queuedBytes;
    }
    return { messages, bytes };
  }

  send(messages: readonly raftpb.Message[]): void {
    const all = this.#writers.get("message");
    const appends = this.#writers.get("msgapp") ?? all;
    const byWriter = new Map<EtcdWriter, raftpb.Message[]>();
    for (const message of messages) {
      const writer = message.type === raftpb.MessageType.MsgApp ? appends : all;
      if (writer === undefined) this.#post(message);
      else byWriter.set(writer, [...(byWriter.get(writer) ?? []), message]);
    }
    for (const [writer, same] of byWriter) writer.send(same);
  }

  close(): void {
    this.#closed = true;
    for (const reader of this.#readers) reader.close();
    for (const writer of this.#writers.values()) writer.close();
    for (const post of this.#posts) post.abort();
  }

  #opened(tookMs: number): void {
    if (this.#openStreams++ === 0) this.#listener.etcdOpened();
    this.#listener.etcdRoundTrip(tookMs);
  }

  #lost(): void {
    if (--this.#openStreams === 0) this.#listener.etcdLost();
  }

  /** Sends a message by itself. */
  #post(message: raftpb.Message): void {
    const { observer, options } = this.#shared;
    const encoded = raftpb.Message.encode(message);
    if (this.#posts.size >= MAX_POSTS || encoded.length > options.maxQueuedBytes) {
      observer.dropped(this.#id, message.type, 1);
      this.#postLost();
      return;
    }
    const aborter = new AbortController();
    this.#posts.add(aborter);
    this.#posted(encoded, aborter.signal).then(
      () => {
        this.#posts.delete(aborter);
        this.#postsFail = false;
        observer.traffic(this.#id).sent.add(encoded.length);
      },
      (error: unknown) => {
        this.#posts.delete(aborter);
        observer.dropped(this.#id, message.type, 1);
        if (this.#closed) return;
        this.#picked = (this.#picked + 1) % Math.max(1, this.#urls.length);
        this.#postLost();
        this.#shared.logger.debug("failed to post a Raft message", {
          error: error instanceof Error ? error.message : String(error),
        });
      },
    );
  }

  #postLost(): void {
    if (!this.#postsFail) this.#listener.dropping();
    this.#postsFail = true;
  }

  async #posted(body: Uint8Array, stopped: AbortSignal): Promise<void> {
    const { options, etcdPosts } = this.#shared;
    const asker = {
      tls: options.tls?.current,
      localAddress: options.localAddress,
      kept: etcdPosts,
    };
    const timeout = AbortSignal.timeout(options.dialTimeoutMs + options.pingTimeoutMs);
    const request = requestPeer(asker, this.#urls[this.#picked] ?? "", {
      method: "POST",
      path: "/raft",
      headers: {
        ...etcdRequestHeaders(options, undefined),
        "content-type": "application/protobuf",
        "content-length": body.length,
      },
      signal: AbortSignal.any([stopped, timeout]),
    });
    const answered = answerToHttp1(request);
    request.end(body);
    const answer = await answered;
    if (speaksQuorate(options, answer.headers)) this.#listener.speaksQuorate();
    if (answer.status === 204) return;
    throw answer.status === 403
      ? refusedBy(this.#shared, { ...answer, status: 410, text: RefusalText.removed })
      : refusedBy(this.#shared, answer);
  }
}
