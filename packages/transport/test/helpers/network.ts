/** Real transports on 127.0.0.1. */
import type { Clock, HttpHandler, LogFields, Logger } from "@quorate/host";
import { SeededRandom } from "@quorate/host";
import { nodeClock, type TlsOptions } from "@quorate/host/node";
import { idToHex } from "@quorate/proto";
import type {
  AskMembers,
  OutgoingSnapshot,
  ReportedMember,
  SnapshotStream,
} from "@quorate/transport";
import {
  Http2Transport,
  type Http2TransportOptions,
  type PeerBoundAddress,
  type PeerListenAddress,
  type TransportObserver,
} from "@quorate/transport/node";
import {
  type MemberUnderTest,
  type NetworkUnderTest,
  RecordingListener,
} from "@quorate/transport/testing";
import { freePorts } from "../../../../test/support/ports.ts";
import { silentObserver } from "../../node/options.ts";
import { ETCD_STREAMS } from "../../src/etcd-frames.ts";

/** A limit for machines that have much else to do; nothing takes as long. */
const LIMIT_MS = 120_000;

export const CLUSTER_ID = 0xc36a1e619c38211bn;

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly msg: string;
  readonly fields: LogFields;
}

/** A logger that keeps its lines. */
export class RecordingLogger implements Logger {
  readonly lines: LogLine[] = [];
  debug(msg: string, fields: LogFields = {}): void {
    this.lines.push({ level: "debug", msg, fields });
  }
  info(msg: string, fields: LogFields = {}): void {
    this.lines.push({ level: "info", msg, fields });
  }
  warn(msg: string, fields: LogFields = {}): void {
    this.lines.push({ level: "warn", msg, fields });
  }
  error(msg: string, fields: LogFields = {}): void {
    this.lines.push({ level: "error", msg, fields });
  }
  child(): Logger {
    return this;
  }
  /** Lines of a level with a message. */
  find(level: LogLine["level"], msg: string): LogLine[] {
    return this.lines.filter((line) => line.level === level && line.msg === msg);
  }
}

/** A listener that a crash can silence. */
class MutableListener extends RecordingListener {
  readonly #to: RecordingListener;
  muted = false;
  constructor(to: RecordingListener) {
    super();
    this.#to = to;
  }
  override received(messages: Parameters<RecordingListener["received"]>[0]): void {
    if (!this.muted) this.#to.received(messages);
  }
  override async snapshotReceived(
    stream: Parameters<RecordingListener["snapshotReceived"]>[0],
  ): Promise<void> {
    if (this.muted) throw new Error("crashed");
    await this.#to.snapshotReceived(stream);
  }
  override unreachable(id: bigint): void {
    if (!this.muted) this.#to.unreachable(id);
  }
  override snapshotSent(id: bigint, taken: boolean): void {
    if (!this.muted) this.#to.snapshotSent(id, taken);
  }
}

export interface RealMember extends MemberUnderTest {
  readonly transport: Http2Transport;
  readonly logger: RecordingLogger;
}

export interface MemberSettings {
  readonly options?: Partial<Http2TransportOptions> | undefined;
  readonly observer?: Partial<TransportObserver>;
  readonly http?: HttpHandler;
  readonly isRemoved?: (id: bigint) => boolean;
  /** What other members report of the membership; all members of the network if undefined. */
  readonly askMembers?: AskMembers;
  readonly selfRemoved?: () => void;
  readonly takesEtcd?: () => boolean;
  /** Time under the test's hand; real time if undefined. */
  readonly clock?: Clock;
}

/**
 * Short waits: what takes seconds in a cluster takes a fraction of one here. But no link is given
 * up because the machine halts.
 */
const QUICK: Partial<Http2TransportOptions> = {
  pingIntervalMs: 50,
  pingTimeoutMs: 60_000,
  quickRetryMs: 5,
  leastRetryMs: 10,
  mostRetryMs: 50,
};

/** A transport whose snapshots may go to members of etcd: their bytes are the same there. */
class TestTransport extends Http2Transport {
  override sendSnapshot(snapshot: OutgoingSnapshot): void {
    const forEtcd = async (): Promise<SnapshotStream> => ({ ...snapshot, form: "etcd" });
    super.sendSnapshot({ ...snapshot, forEtcd });
  }
}

export class RealNetwork implements NetworkUnderTest {
  readonly #tls: TlsOptions | undefined;
  readonly #members: {
    readonly logger: RecordingLogger;
    readonly transport: Http2Transport;
    readonly listener: MutableListener;
    readonly reported: ReportedMember;
  }[] = [];

  readonly #directory: string | undefined;
  readonly #areEtcd: boolean;
  #sockets = 0;

  /**
   * @param directory of the members' unix sockets; ports of 127.0.0.1 if undefined
   * @param areEtcd whether the members speak as those of etcd
   */
  constructor(tls?: TlsOptions, directory?: string, areEtcd = false) {
    this.#tls = tls;
    this.#directory = directory;
    this.#areEtcd = areEtcd;
  }

  /** Where a member listens: at an URL that it had, or at one that no other process takes. */
  async #address(url: string | undefined): Promise<PeerListenAddress> {
    const secure = this.#tls !== undefined;
    if (this.#directory !== undefined) {
      const path = url?.replace(/^\w+:\/\//, "") ?? `${this.#directory}/${this.#sockets++}`;
      return { host: "", port: 0, path, secure };
    }
    const port = url === undefined ? (await freePorts(1))[0] : Number(new URL(url).port);
    return { host: "127.0.0.1", port, secure };
  }

  async start(
    id: bigint,
    listener: RecordingListener,
    urls?: readonly string[],
    settings: MemberSettings = {},
  ): Promise<RealMember> {
    const logger = new RecordingLogger();
    const mutable = new MutableListener(listener);
    const listen = [await this.#address(urls?.[0])];
    const localUrls: string[] = [];
    const transport = new TestTransport(
      {
        selfId: id,
        clusterId: CLUSTER_ID,
        localUrls,
        listen,
        tls: this.#tls,
        serverVersion: "3.7.0",
        minClusterVersion: "3.0.0",
        ...QUICK,
        isEtcd: this.#areEtcd,
        ...settings.options,
      },
      {
        clock: settings.clock ?? nodeClock,
        random: new SeededRandom(id),
        logger,
        listener: mutable,
        http: settings.http ?? (() => ({ status: 404, headers: {}, body: "404 page not found\n" })),
        observer: { ...silentObserver, ...settings.observer },
        isRemoved: settings.isRemoved,
        askMembers:
          settings.askMembers ??
          (async (_urls, reported) => reported(this.#members.map((member) => member.reported))),
        selfRemoved: settings.selfRemoved,
        takesEtcd: settings.takesEtcd,
      },
    );
    this.#members.push({
      logger,
      transport,
      listener: mutable,
      reported: { id, peerUrls: localUrls },
    });
    const bound = await transport.listen();
    localUrls.push(...bound.map(urlOf));
    return { id, transport, listener, urls: localUrls, logger };
  }

  async crash(member: MemberUnderTest): Promise<void> {
    const found = this.#members.find(({ transport }) => transport === member.transport);
    if (found === undefined) throw new Error("not a member of this network");
    found.listener.muted = true;
    await found.transport.close();
  }

  /** A reader of etcd's protocol says when it has each of the two streams, and when it lost it. */
  hasWay(from: MemberUnderTest, to: MemberUnderTest): boolean {
    if (!this.#areEtcd) return true;
    const { logger } = this.#members.find(({ transport }) => transport === to.transport)!;
    const count = (level: "info" | "warn", msg: string) =>
      logger.find(level, msg).filter(({ fields }) => fields["remote-peer-id"] === idToHex(from.id))
        .length;
    const opened = count("info", "established TCP streaming connection with remote peer");
    const lost = count("warn", "lost TCP streaming connection with remote peer");
    return opened - lost === ETCD_STREAMS.length;
  }

  async until(what: string, condition: () => boolean): Promise<void> {
    const startMs = performance.now();
    while (!condition()) {
      if (performance.now() - startMs > LIMIT_MS)
        throw new Error(`waited ${LIMIT_MS / 1000} s in vain: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map(({ transport }) => transport.close()));
  }
}

function urlOf({ port, path, secure }: PeerBoundAddress): string {
  if (path !== undefined) return `${secure ? "unixs" : "unix"}://${path}`;
  return `${secure ? "https" : "http"}://127.0.0.1:${port}`;
}
