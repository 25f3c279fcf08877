/** Requests of other members: streams of messages that last, and snapshots. */
import type { X509Certificate } from "node:crypto";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { idToHex, raftpb } from "@quorate/proto";
import { decodeMessage, FrameError, FrameReader, PREFIX_BYTES } from "../src/frames.ts";
import { RareLog } from "../src/rare-log.ts";
import {
  answerHeaders,
  checkRequest,
  type Introduction,
  type Refusal,
  remoteClusterId,
  remoteVersion,
  SNAPSHOT_PATH,
} from "./headers.ts";
import { fitsUrls } from "./member-certificate.ts";
import type { RefusalReason, Shared } from "./options.ts";
import { acceptStream } from "./stream.ts";

/** Who has connected: a peer that had to show a certificate, with it. */
export interface Caller {
  readonly peerAddress: string;
  readonly certificate: X509Certificate | undefined;
}

/** What incoming requests mean for the rest of a transport. */
export interface IncomingListener {
  /** A member has opened a stream to this one: it is there, and says under which URLs. */
  heardFrom(introduction: Introduction): void;
}

/** What the log says of a request that is turned away, in etcd's words. */
const REFUSED: Readonly<Record<RefusalReason, string>> = {
  certificate: "rejected stream from remote peer because of its certificate",
  "cluster-id": "request cluster ID mismatch",
  version: "request version incompatibility",
  to: "ignored streaming request; ID mismatch",
  removed: "rejected stream from remote peer because it was removed",
  unknown: "rejected stream from a stranger: no member of the cluster knows the remote peer",
  asking: "asking other members about the remote peer",
  request: "rejected stream from remote peer",
};

/**
 * A snapshot that brings less than this in the time of a stall does not come along: a byte now and
 * then would hold its place for ever.
 */
const MIN_SNAPSHOT_PROGRESS_BYTES = 64 * 1024;

export class Incoming {
  readonly #shared: Shared;
  readonly #listener: IncomingListener;
  /** Connections that members have to this one, by member. */
  readonly #connections = new Map<bigint, Set<{ destroy(): void }>>();
  readonly #rareLog: RareLog;
  #snapshots = 0;
  /** The snapshot that comes from a member. */
  readonly #receiving = new Map<bigint, ServerHttp2Stream>();

  constructor(shared: Shared, listener: IncomingListener) {
    this.#shared = shared;
    this.#rareLog = new RareLog(shared.clock);
    this.#listener = listener;
  }

  /**
   * Serves a member's stream of messages (see stream.ts), all of whose bytes are still to be read.
   * @param isMember called when the member's introduction is accepted
   */
  acceptMessages(socket: Socket, caller: Caller, isMember: (id: bigint) => void): void {
    const { listener, options } = this.#shared;
    let from: bigint | undefined;
    let receive: ((bytes: Uint8Array) => void) | undefined;
    acceptStream(socket, options, {
      requested: (stream, fields) => {
        const introduction = this.#introduced(fields, caller);
        if ("reason" in introduction) {
          stream.refuse(introduction.status, introduction.text);
          return;
        }
        from = introduction.from;
        isMember(from);
        this.#remember(from, socket, socket);
        this.#listener.heardFrom(introduction);
        stream.agree();
        receive = this.#messageReader(socket, from, (messages) => listener.received(messages));
      },
      received: (bytes) => receive?.(bytes),
      damaged: (error) => this.#damaged(from ?? 0n, error),
    });
  }

  /** True if the request was for a snapshot; it is then answered here. */
  accept(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders & { ":method"?: string; ":path"?: string },
    caller: Caller,
    isMember: (id: bigint) => void,
  ): boolean {
    if (headers[":path"] !== SNAPSHOT_PATH) return false;
    if (headers[":method"] !== "POST") {
      this.#answer(stream, 405, "Method Not Allowed");
      return true;
    }
    const introduction = this.#introduced(headers, caller);
    if ("reason" in introduction) this.#answer(stream, introduction.status, introduction.text);
    else {
      isMember(introduction.from);
      this.#remember(introduction.from, stream, { destroy: () => stream.session?.destroy() });
      this.#listener.heardFrom(introduction);
      void this.#receiveSnapshot(stream, introduction.from);
    }
    return true;
  }

  /** Ends all connections of a member. */
  drop(id: bigint): void {
    for (const connection of this.#connections.get(id) ?? []) connection.destroy();
  }

  /** Who sends a request; a refusal is noted. */
  #introduced(
    headers: IncomingHttpHeaders,
    { peerAddress, certificate }: Caller,
  ): Introduction | Refusal {
    const { options, isRemoved, directory } = this.#shared;
    const introduction = checkRequest(options, headers, isRemoved, (id) =>
      directory.standingOf(id, fitsUrls(options, certificate)),
    );
    if ("reason" in introduction && introduction.reason !== "asking") {
      this.#logRefusal(headers, introduction, peerAddress);
      this.#shared.observer.refused(introduction.from, introduction.reason);
    }
    return introduction;
  }

  #remember(
    id: bigint,
    carrier: Socket | ServerHttp2Stream,
    connection: { destroy(): void },
  ): void {
    const connections = this.#connections.get(id) ?? new Set();
    this.#connections.set(id, connections.add(connection));
    carrier.on("close", () => {
      connections.delete(connection);
      if (connections.size === 0 && this.#connections.get(id) === connections)
        this.#connections.delete(id);
    });
  }

  /** Takes the bytes of a member's stream, and hands the messages on that are whole. */
  #messageReader(
    socket: Socket,
    from: bigint,
    received: (messages: raftpb.Message[]) => void,
  ): (bytes: Uint8Array) => void {
    const { observer, options } = this.#shared;
    const reader = new FrameReader(options.maxMessageBytes);
    return (chunk) => {
      const messages: raftpb.Message[] = [];
      let messageBytes = 0;
      try {
        reader.push(chunk);
        for (let frame = reader.take(); frame !== undefined; frame = reader.take()) {
          messageBytes += PREFIX_BYTES + frame.length;
          const message = decodeMessage(frame);
          if (message.from === from && message.to === options.selfId) messages.push(message);
          else this.#misdirected(from, message);
        }
      } catch (error) {
        if (!(error instanceof FrameError)) throw error;
        this.#damaged(from, error);
        socket.destroy();
      }
      if (messageBytes > 0) observer.received(from, messageBytes);
      // What came whole before the failure is good.
      if (messages.length > 0) received(messages);
    };
  }

  #damaged(from: bigint, error: FrameError): void {
    this.#shared.observer.receiveFailed(from);
    if (!this.#rareLog.allows(`${from} damaged`)) return;
    this.#shared.logger.warn("failed to read Raft message", {
      ...this.#fields(from),
      error: error.message,
    });
  }

  #misdirected(from: bigint, message: raftpb.Message): void {
    this.#shared.observer.receiveFailed(from);
    if (!this.#rareLog.allows(`${from} misdirected`)) return;
    this.#shared.logger.warn("ignored Raft message with a wrong address", {
      ...this.#fields(from),
      "message-from": idToHex(message.from),
      "message-to": idToHex(message.to),
    });
  }

  async #receiveSnapshot(stream: ServerHttp2Stream, from: bigint): Promise<void> {
    const { clock, listener, logger, observer, options } = this.#shared;
    // A member sends one at a time: an older one was given up by its sender, and may not have ended
    // here yet.
    this.#receiving.get(from)?.close();
    if (this.#snapshots >= options.maxSnapshots) {
      this.#answer(stream, 503, "too many snapshots are being received");
      return;
    }
    this.#snapshots++;
    this.#receiving.set(from, stream);
    const startedMs = clock.monotonicMs();
    let sizeBytes = 0;
    let fields: Record<string, string | number> = this.#fields(from);
    observer.snapshotReceiveStarted(from);
    let taken = false;
    const frames = this.#frames(stream, (bytes) => {
      sizeBytes += bytes;
      observer.received(from, bytes);
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
      await listener.snapshotReceived({ message, body: frames });
      taken = true;
      const took = `${Math.round(clock.monotonicMs() - startedMs)}ms`;
      logger.info("received and saved database snapshot", {
        ...fields,
        "incoming-snapshot-size-bytes": sizeBytes,
        "download-took": took,
      });
      this.#answer(stream, 204, "");
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      logger.warn("failed to save incoming database snapshot", {
        ...fields,
        "incoming-snapshot-size-bytes": sizeBytes,
        error: reason,
      });
      observer.receiveFailed(from);
      this.#answer(
        stream,
        error instanceof FrameError ? 400 : 500,
        `failed to save snapshot (${reason})`,
      );
    }
    await frames.return();
    stream.resume();
    this.#snapshots--;
    if (this.#receiving.get(from) === stream) this.#receiving.delete(from);
    observer.snapshotReceiveEnded(from, taken, clock.monotonicMs() - startedMs, sizeBytes);
  }

  /**
   * The frames of a snapshot up to its end; throws FrameError when it breaks off. As fast as they
   * are taken, no faster.
   */
  async *#frames(
    stream: ServerHttp2Stream,
    received: (bytes: number) => void,
  ): AsyncGenerator<Uint8Array, void, void> {
    const { clock, options } = this.#shared;
    const reader = new FrameReader(options.maxMessageBytes);
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
      for await (const chunk of stream.iterator({
        destroyOnReturn: false,
      }) as AsyncIterable<Uint8Array>) {
        received(chunk.length);
        progressBytes += chunk.length;
        reader.push(chunk);
        for (let frame = reader.take(); frame !== undefined; frame = reader.take()) {
          if (frame.length === 0) return;
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
    throw new FrameError("snapshot broke off");
  }

  /** Answers and drops what the sender may still send. */
  #answer(stream: ServerHttp2Stream, status: number, text: string): void {
    if (stream.destroyed || stream.closed) return;
    const headers = {
      ":status": status,
      ...answerHeaders(this.#shared.options),
      "content-type": "text/plain; charset=utf-8",
    };
    if (text === "") stream.respond(headers, { endStream: true });
    else {
      stream.respond(headers);
      stream.end(`${text}\n`);
    }
    stream.resume();
  }

  /**
   * A peer that is turned away tries again and again: one line of each kind in a while is enough.
   */
  #logRefusal(headers: IncomingHttpHeaders, refusal: Refusal, remoteAddress: string): void {
    if (!this.#rareLog.allows(`${refusal.from} ${refusal.reason}`)) return;
    const { logger, options } = this.#shared;
    logger.warn(REFUSED[refusal.reason], {
      ...this.#fields(refusal.from),
      "remote-addr": remoteAddress,
      "local-member-cluster-id": idToHex(options.clusterId),
      "remote-peer-cluster-id": remoteClusterId(headers),
      "local-member-server-version": options.serverVersion,
      "remote-peer-server-version": remoteVersion(headers),
      error: refusal.text,
    });
  }

  #fields(from: bigint): { readonly [name: string]: string } {
    return {
      "local-member-id": idToHex(this.#shared.options.selfId),
      "remote-peer-id": idToHex(from),
    };
  }
}
