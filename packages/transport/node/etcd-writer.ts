/**
 * One stream on which a member of etcd reads this member's messages: the answer of its request.
 * What waits for the network is bounded; once it is full, all is dropped until half of it has left.
 */
import type { ServerResponse } from "node:http";
import type { Timer } from "@quorate/host";
import { concat, type raftpb } from "@quorate/proto";
import { type EtcdStream, etcdEncoder, type MessageEncoder } from "../src/etcd-frames.ts";
import { peerFields, type Shared } from "./options.ts";

/** What becomes of a stream. */
export interface EtcdWriterListener {
  /** Messages are being lost. */
  dropping(): void;
  /** The peer has gone, or does not read any more. */
  closed(): void;
}

interface Sink {
  readonly id: bigint;
  readonly stream: EtcdStream;
  /** Its head is sent, and it has no end. */
  readonly response: ServerResponse;
}

export class EtcdWriter {
  readonly #shared: Shared;
  readonly #sink: Sink;
  readonly #listener: EtcdWriterListener;
  readonly #encoder: MessageEncoder;
  readonly #alive: Timer;
  #messages = 0;
  #bytes = 0;
  #full = false;
  /** When the oldest bytes that wait were written; undefined if none do. */
  #waitsSinceMs: number | undefined;

  constructor(shared: Shared, sink: Sink, listener: EtcdWriterListener) {
    const { clock, options } = shared;
    this.#shared = shared;
    this.#sink = sink;
    this.#listener = listener;
    this.#encoder = etcdEncoder(sink.stream);
    this.#alive = clock.every(options.pingIntervalMs, () => this.#sayAlive());
    sink.response.on("error", () => {});
    sink.response.on("close", () => {
      this.#alive.cancel();
      listener.closed();
    });
    this.#sayAlive();
  }

  /** Messages that have not left for the kernel. */
  get queuedMessages(): number {
    return this.#messages;
  }

  get queuedBytes(): number {
    return this.#bytes;
  }

  /** Sends what it can as one write. */
  send(messages: readonly raftpb.Message[]): void {
    const { observer, options } = this.#shared;
    const { id } = this.#sink;
    const parts: Uint8Array[] = [];
    let sizeBytes = 0;
    for (const message of messages) {
      const waiting = this.#messages + parts.length;
      // One message always fits, whatever its length.
      const isFull =
        waiting > 0 &&
        (waiting >= options.maxQueuedMessages || this.#bytes + sizeBytes >= options.maxQueuedBytes);
      if (this.#full || isFull) {
        if (!this.#full) this.#listener.dropping();
        this.#full = true;
        observer.dropped(id, message.type, 1);
        continue;
      }
      // Not before it is known to be sent: an append's form depends on those before it.
      const encoded = this.#encoder.encode(message);
      parts.push(encoded);
      sizeBytes += encoded.length;
    }
    if (parts.length === 0) return;
    observer.traffic(id).sent.add(sizeBytes);
    this.#write(concat(parts), parts.length);
  }

  /** Ends the stream; `closed` follows. */
  close(): void {
    this.#alive.cancel();
    this.#sink.response.destroy();
  }

  #write(bytes: Uint8Array, messages: number): void {
    const { clock, options } = this.#shared;
    this.#messages += messages;
    this.#bytes += bytes.length;
    this.#waitsSinceMs ??= clock.monotonicMs();
    this.#sink.response.write(bytes, () => {
      this.#messages -= messages;
      this.#bytes -= bytes.length;
      this.#waitsSinceMs = this.#bytes > 0 ? clock.monotonicMs() : undefined;
      const { maxQueuedMessages, maxQueuedBytes } = options;
      if (this.#messages * 2 <= maxQueuedMessages && this.#bytes * 2 <= maxQueuedBytes)
        this.#full = false;
    });
  }

  /** Keeps the peer from giving the stream up, and gives up one that nobody reads. */
  #sayAlive(): void {
    const { clock, logger, options } = this.#shared;
    const { id, response } = this.#sink;
    const sinceMs = this.#waitsSinceMs;
    if (sinceMs === undefined) {
      this.#write(this.#encoder.alive(), 0);
      return;
    }
    if (clock.monotonicMs() - sinceMs < options.pingTimeoutMs) return;
    const fields = peerFields(this.#shared, id);
    logger.warn("closed a stream that the remote peer does not read", fields);
    response.destroy();
  }
}
