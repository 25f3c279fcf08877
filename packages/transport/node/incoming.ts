/** Requests of other members: streams of messages that last, and snapshots. */
import type { X509Certificate } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { idToHex } from "@quorate/proto";
import type { EtcdStream } from "../src/etcd-frames.ts";
import type { ChannelKind } from "../src/frames.ts";
import { RareLog } from "../src/rare-log.ts";
import { EtcdRequests } from "./etcd-requests.ts";
import {
  answerHeaders,
  CLUSTER_ID_ADVICE,
  checkEtcdRequest,
  checkRequest,
  FETCH_PATH,
  type Introduction,
  type Refusal,
  remoteClusterId,
  remoteVersion,
  SNAPSHOT_PATH,
  STREAM_PATH,
} from "./headers.ts";
import { fitsUrls } from "./member-certificate.ts";
import { peerFields, type RefusalReason, type Shared } from "./options.ts";
import type { SnapshotReceiver } from "./snapshot-receiver.ts";
import { acceptStream, Carrier, logDamage, MessageReader } from "./stream.ts";

/** Who has connected: a peer that had to show a certificate, with it. */
export interface Caller {
  readonly peerAddress: string;
  readonly certificate: X509Certificate | undefined;
}

/** What incoming requests mean for the rest of a transport. */
export interface IncomingListener {
  /** A member has opened a stream to this one: it is there, and says under which URLs. */
  heardFrom(introduction: Introduction): void;
  /** A member has opened a stream on which it reads messages too. */
  lent(from: bigint, kind: ChannelKind, carrier: Carrier): void;
  /** A member of etcd reads a stream of messages, whose head is sent. */
  attached(from: bigint, stream: EtcdStream, response: ServerResponse): void;
  /**
   * A member comes for a snapshot that this one has for it.
   * @param stream a request that is not answered yet
   * @returns false if there is none
   */
  fetched(from: bigint, stream: ServerHttp2Stream): boolean;
}

const KINDS: Readonly<Record<string, ChannelKind>> = {
  [`${STREAM_PATH}urgent`]: "urgent",
  [`${STREAM_PATH}bulk`]: "bulk",
};

/** What the log says of a request that is turned away, in etcd's words. */
const REFUSED: Readonly<Record<RefusalReason, string>> = {
  certificate: "rejected stream from remote peer because of its certificate",
  "cluster-id": "request cluster ID mismatch",
  version: "request version incompatibility",
  to: "ignored streaming request; ID mismatch",
  removed: "rejected stream from remote peer because it was removed",
  unknown: "rejected stream from an unknown peer: no member of the cluster knows it",
  asking: "asking other members about the remote peer",
  request: "rejected stream from remote peer",
};

export class Incoming {
  readonly #shared: Shared;
  readonly #listener: IncomingListener;
  /** Connections that members have to this one, by member. */
  readonly #connections = new Map<bigint, Set<{ destroy(): void }>>();
  readonly #rareLog: RareLog;
  readonly #snapshots: SnapshotReceiver;
  readonly #etcd: EtcdRequests;
  /**
   * The last stream of each kind that each member reads messages on. Not more than members'
   * connections.
   */
  readonly #lent = new Map<bigint, Map<ChannelKind, Carrier>>();

  constructor(shared: Shared, snapshots: SnapshotReceiver, listener: IncomingListener) {
    this.#shared = shared;
    this.#snapshots = snapshots;
    this.#etcd = new EtcdRequests(shared, snapshots);
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
    acceptStream(socket, options, {
      requested: (stream, fields) => {
        const introduction = this.#introduced(fields, caller);
        if ("reason" in introduction) {
          stream.refuse(introduction.status, introduction.text);
          return undefined;
        }
        from = introduction.from;
        isMember(from);
        this.#remember(from, socket, socket);
        this.#listener.heardFrom(introduction);
        stream.agree();
        if (stream.isTwoWay) this.#lend(from, fields[":path"], new Carrier(socket, stream));
        const parts = { shared: this.#shared, rareLog: this.#rareLog, connection: socket };
        return new MessageReader(parts, from, listener);
      },
      damaged: (error) => logDamage(this.#shared, this.#rareLog, from ?? 0n, error),
    });
  }

  /** The streams that a member reads messages on, by kind. */
  lentBy(id: bigint): ReadonlyMap<ChannelKind, Carrier> {
    return this.#lent.get(id) ?? new Map();
  }

  #lend(from: bigint, path: string | undefined, carrier: Carrier): void {
    const kind = KINDS[path ?? ""];
    if (kind === undefined) return;
    const ofMember = this.#lent.get(from) ?? new Map<ChannelKind, Carrier>();
    this.#lent.set(from, ofMember.set(kind, carrier));
    carrier.socket.on("close", () => {
      if (ofMember.get(kind) !== carrier) return;
      ofMember.delete(kind);
      if (ofMember.size === 0) this.#lent.delete(from);
    });
    this.#listener.lent(from, kind, carrier);
  }

  /** True if the request was for a snapshot; it is then answered here. */
  accept(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders & { ":method"?: string | undefined; ":path"?: string | undefined },
    caller: Caller,
    isMember: (id: bigint) => void,
  ): boolean {
    const path = headers[":path"];
    if (path !== SNAPSHOT_PATH && path !== FETCH_PATH) return false;
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
      this.#snapshotRequested(stream, path, introduction.from);
    }
    return true;
  }

  /** True if the request is one of etcd's peer protocol; it is then answered here. */
  acceptEtcd(
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
    isMember: (id: bigint) => void,
  ): boolean {
    return this.#etcd.accept(request, response, {
      introduced: (headers) => this.#introduced(headers, caller, checkEtcdRequest),
      accepted: (introduction) => {
        isMember(introduction.from);
        this.#remember(introduction.from, response, request.socket);
        this.#listener.heardFrom(introduction);
      },
      attached: (from, stream, to) => this.#listener.attached(from, stream, to),
    });
  }

  #snapshotRequested(stream: ServerHttp2Stream, path: string, from: bigint): void {
    if (path === FETCH_PATH) {
      if (!this.#listener.fetched(from, stream))
        this.#answer(stream, 404, "no snapshot waits for this member");
      return;
    }
    const answer = (status: number, text: string) => this.#answer(stream, status, text);
    void this.#snapshots.receive({ form: "quorate", stream }, from, answer);
  }

  /** Ends all connections of a member. */
  drop(id: bigint): void {
    for (const connection of this.#connections.get(id) ?? []) connection.destroy();
  }

  /** Who sends a request; a refusal is noted. */
  #introduced(
    headers: IncomingHttpHeaders,
    { peerAddress, certificate }: Caller,
    check = checkRequest,
  ): Introduction | Refusal {
    const { options, isRemoved, takesEtcd, directory } = this.#shared;
    const fits = fitsUrls(options, certificate);
    const standingOf = (id: bigint) => directory.standingOf(id, fits);
    const introduction = check({ options, isRemoved, takesEtcd, standingOf }, headers);
    if ("reason" in introduction && introduction.reason !== "asking") {
      this.#logRefusal(headers, introduction, peerAddress);
      this.#shared.observer.refused(introduction.from, introduction.reason);
    }
    return introduction;
  }

  #remember(
    id: bigint,
    carrier: Socket | ServerHttp2Stream | ServerResponse,
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
      ...peerFields(this.#shared, refusal.from),
      "remote-addr": remoteAddress,
      "local-member-cluster-id": idToHex(options.clusterId),
      "remote-peer-cluster-id": remoteClusterId(headers),
      "local-member-server-version": options.serverVersion,
      "remote-peer-server-version": remoteVersion(headers),
      error: refusal.text,
      ...(refusal.reason === "cluster-id" ? { advice: CLUSTER_ID_ADVICE } : {}),
    });
  }
}
