/** Requests of members of etcd to the peer port: see etcd-peer.ts. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { idFromHex } from "@quorate/proto";
import { ETCD_STREAMS, type EtcdStream } from "../src/etcd-frames.ts";
import { decodeMessage, FrameError } from "../src/frames.ts";
import {
  etcdAnswerHeaders,
  type Introduction,
  type Refusal,
  SNAPSHOT_PATH,
  STREAM_PATH,
} from "./headers.ts";
import type { Shared } from "./options.ts";
import type { SnapshotReceiver } from "./snapshot-receiver.ts";

const MESSAGE_PATH = "/raft";
const PROBE_PATH = "/raft/probing";

/** How the requests are taken. */
export interface EtcdAdmission {
  /** Who sends a request, or why it is not taken; a refusal is noted. */
  introduced(headers: IncomingMessage["headers"]): Introduction | Refusal;
  /** The request is a member's. */
  accepted(introduction: Introduction): void;
  /** A member reads a stream, whose head is sent. */
  attached(from: bigint, stream: EtcdStream, response: ServerResponse): void;
}

export class EtcdRequests {
  readonly #shared: Shared;
  readonly #snapshots: SnapshotReceiver;

  constructor(shared: Shared, snapshots: SnapshotReceiver) {
    this.#shared = shared;
    this.#snapshots = snapshots;
  }

  /** True if the request is for a path of etcd's peer protocol; it is then answered here. */
  accept(request: IncomingMessage, response: ServerResponse, admission: EtcdAdmission): boolean {
    const path = request.url ?? "";
    if (path === PROBE_PATH) this.#probe(response);
    else if (path.startsWith(STREAM_PATH)) this.#stream(path, request, response, admission);
    else if (path === MESSAGE_PATH || path === SNAPSHOT_PATH)
      this.#posted(path, request, response, admission);
    else return false;
    return true;
  }

  /** As etcd's prober asks (xiang90/probing). */
  #probe(response: ServerResponse): void {
    const now = new Date(this.#shared.clock.wallMs()).toISOString();
    response.writeHead(200, { "content-type": "application/json" });
    response.end(`{"OK":true,"Now":"${now}"}\n`);
  }

  #stream(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    admission: EtcdAdmission,
  ): void {
    if (request.method !== "GET") {
      this.#answer(response, 405, "Method Not Allowed", { allow: "GET" });
      return;
    }
    const [name, id, ...more] = path.slice(STREAM_PATH.length).split("/");
    const stream = ETCD_STREAMS.find((one) => one === name);
    const introduction = admission.introduced(request.headers);
    if ("reason" in introduction) this.#answer(response, introduction.status, introduction.text);
    else if (stream === undefined || more.length > 0) this.#answer(response, 404, "invalid path");
    else if (idFromHex(id ?? "") !== introduction.from) this.#answer(response, 404, "invalid from");
    else {
      admission.accepted(introduction);
      request.socket.setNoDelay(true);
      response.writeHead(200, etcdAnswerHeaders(this.#shared.options));
      response.flushHeaders();
      admission.attached(introduction.from, stream, response);
    }
  }

  #posted(
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    admission: EtcdAdmission,
  ): void {
    if (request.method !== "POST") {
      this.#answer(response, 405, "Method Not Allowed", { allow: "POST" });
      return;
    }
    const introduction = admission.introduced(request.headers);
    if ("reason" in introduction) {
      const isRemoved = introduction.reason === "removed";
      this.#answer(response, isRemoved ? 403 : introduction.status, introduction.text);
      return;
    }
    admission.accepted(introduction);
    const { from } = introduction;
    if (path === SNAPSHOT_PATH) {
      const answer = (status: number, text: string) => this.#answer(response, status, text);
      void this.#snapshots.receive({ form: "etcd", stream: request }, from, answer);
      return;
    }
    this.#message(request, from).then(
      () => this.#answer(response, 204, ""),
      (error: unknown) => {
        this.#shared.observer.receiveFailed(from);
        const isBad = error instanceof FrameError;
        this.#answer(response, isBad ? 400 : 500, isBad ? error.message : "error reading message");
      },
    );
  }

  async #message(request: IncomingMessage, from: bigint): Promise<void> {
    const { listener, observer, options } = this.#shared;
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length;
      if (sizeBytes > options.maxMessageBytes)
        throw new FrameError(`message of more than ${options.maxMessageBytes} bytes`);
      chunks.push(chunk);
    }
    const message = decodeMessage(Buffer.concat(chunks));
    if (message.from !== from || message.to !== options.selfId)
      throw new FrameError("a message of another member, or for another");
    observer.traffic(from).received.add(sizeBytes);
    listener.received([message]);
  }

  /** Answers and drops what the sender may still send. */
  #answer(
    response: ServerResponse,
    status: number,
    text: string,
    headers: Record<string, string> = {},
  ): void {
    if (response.headersSent || response.destroyed) return;
    const plain = text === "" ? {} : { "content-type": "text/plain; charset=utf-8" };
    response.writeHead(status, {
      ...etcdAnswerHeaders(this.#shared.options),
      ...plain,
      ...headers,
    });
    response.end(text === "" ? undefined : `${text}\n`);
    response.req.resume();
  }
}
