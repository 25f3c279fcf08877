/** A member on this thread: its options, its files, its addresses, and how it ends. */
import { EventEmitter } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "@quorate/client";
import { type ClientOptions, clientOver, LocalLink } from "@quorate/client/node";
import {
  type Clock,
  type Disk,
  type KeyspaceOpener,
  type Logger,
  silentLogger,
} from "@quorate/host";
import {
  MemoryDisk,
  type MemoryDiskOptions,
  MemoryKeyspaceOpener,
  nodeClock,
} from "@quorate/host/node";
import type { Member, MemberDeps, MemberObserver } from "@quorate/member";
import { type AlarmMember, CodedError } from "@quorate/proto";
import type { ServiceTable } from "@quorate/rpc";
import { type ConfigFile, configOfObject, loadConfig, type ServerConfig } from "@quorate/server";
import { watchLoop } from "./loop-watch.ts";

/** What startMember() takes. */
export interface MemberOptions {
  /**
   * Made where it is missing, and kept. Default: a temporary directory, which `stop` removes.
   * ":memory:": no directory; the member's files are in memory and end with it.
   */
  readonly dataDir?: string;
  /**
   * The configuration, as the content of a config file; not beside `flags`. Without
   * "listen-client-urls" the member listens on a free port of 127.0.0.1; without
   * "listen-peer-urls" it is a cluster of one.
   */
  readonly config?: ConfigFile;
  /** The same as flags of the program `quorate`, such as "--max-txn-ops=256". */
  readonly flags?: readonly string[];
  /**
   * Listen on a unix socket that only this user can open, and on no port; not beside
   * "listen-client-urls".
   */
  readonly isPrivate?: boolean;
  /**
   * Run the member on a thread of its own: it keeps its leadership while the program holds the
   * event loop. Default: false.
   */
  readonly ownThread?: boolean;
  /**
   * Warn, by the event "held" and in the log, when the program has held the member's event loop for
   * longer than this share of the election timeout; more than 0, default 0.25.
   */
  readonly maxHeldShare?: number;
  /** Default: no logs. */
  readonly logger?: Logger;
}

/** How long a program held the event loop of its member. */
export interface HeldLoop {
  readonly heldMs: number;
  /** After so long without a heartbeat a member calls an election. */
  readonly electionTimeoutMs: number;
}

/** A leader as a member knows it. */
export interface LeaderChange {
  /** The member's id; 0n where none is known. */
  readonly leader: bigint;
  /** Whether it is this member. */
  readonly isLeader: boolean;
}

/** What a member's `events` tells, with the arguments of each. */
export interface MemberEvents {
  /** The member takes part in a cluster that has a leader; once. */
  ready: [];
  /** The leader has changed. */
  leader: [change: LeaderChange];
  /** Alarms were raised or ended; with those that are raised now. */
  alarms: [alarms: readonly AlarmMember[]];
  /** The program has held the event loop for longer than `maxHeldShare` of the election timeout. */
  held: [held: HeldLoop];
  /** The member has ended; with the error if it had to. Once, and the last. */
  closed: [error?: unknown];
}

/** Options of a client in the process. */
export type LocalClientOptions = Pick<ClientOptions, "auth" | "timeoutMs" | "maxPendingCalls">;

/** A member that serves. */
export interface RunningMember extends AsyncDisposable {
  /** Its client URLs, for connect(). */
  readonly endpoints: readonly string[];
  /** ":memory:" for a member in memory. */
  readonly dataDir: string;
  /** Tells what changes. What changed before a listener was added is not told. */
  readonly events: EventEmitter<MemberEvents>;
  /** Resolves when the member takes part in a cluster that has a leader. */
  readonly ready: Promise<void>;
  /**
   * Resolves after `stop`, or after the member was removed from its cluster; rejects if it had to
   * end, for example because its disk is full.
   */
  readonly ended: Promise<void>;
  /**
   * A client of this member alone, whose calls go through no socket; through one for a member on a
   * thread of its own.
   */
  client(options?: LocalClientOptions): Client;
  /** Transfers leadership, completes calls in progress, syncs and closes. Can be repeated. */
  stop(): Promise<void>;
}

/** Why a member is not started. */
export class StartError extends CodedError<"NothingToRun" | "NeedsDirectory"> {
  constructor(code: StartError["code"], message: string) {
    super("StartError", code, message);
  }
}

/** The world of a member, where it is to be another than this machine. */
export interface Platform {
  readonly clock?: Clock;
  /** Where a member in memory keeps its files, which outlive it there. */
  readonly memory?: Memory;
  /** Changes what the member is started with. */
  readonly adapt?: (deps: MemberDeps) => MemberDeps;
  /** Goes around the services. */
  readonly around?: (services: ServiceTable) => ServiceTable;
}

/** Files in memory. */
export interface Memory {
  readonly disk: Disk;
  readonly keyspaces: KeyspaceOpener;
}

/** A member of this thread, as its owner in this repository sees it. */
export interface LaunchedMember extends RunningMember {
  readonly member: Member;
  /** Closes at once: nothing is handed over, and calls are cut off. */
  kill(): Promise<void>;
}

const IN_MEMORY = ":memory:";
/** What a member in memory may hold of live records, unless its configuration says another. */
const MEMORY_QUOTA_BYTES: number = 256 * 1024 * 1024;
/** Of its log and snapshots. Beyond it the member ends, as on a full disk. */
const MEMORY_DISK_BYTES: number = 1024 * 1024 * 1024;

/** A segment is written with zeros before its first use, so a large one delays the first start. */
const WAL_SEGMENT_BYTES = 8_000_000;

const MAX_HELD_SHARE = 0.25;

/** A free port can be taken before the member listens on it. */
const MAX_ATTEMPTS = 3;

/**
 * Starts a member on this thread, as startMember says.
 * @param platform where it is to be another than this machine
 */
export async function launch(
  options: MemberOptions,
  platform: Platform = {},
): Promise<LaunchedMember> {
  if (options.config !== undefined && options.flags !== undefined)
    throw new TypeError("startMember: give config or flags, not both");
  const place = placeOf(options);
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await start(await configOf(options, place), options, place, platform);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        const mayRetry = code === "EADDRINUSE" && !isGiven(options, "listen-client-urls");
        if (!mayRetry || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  } catch (error) {
    place.remove();
    throw error;
  }
}

/** Where a member keeps its files. */
interface Place {
  readonly isMemory: boolean;
  readonly dataDir: string;
  /**
   * For sockets: the path of one may have 107 bytes, which data directories often exceed. Undefined
   * for a member that leaves nothing in the file system.
   */
  readonly socketDir: string | undefined;
  remove(): void;
}

function placeOf({ dataDir, config, isPrivate }: MemberOptions): Place {
  const isMemory = (config?.["data-dir"] ?? dataDir) === IN_MEMORY;
  if (isMemory && isPrivate !== true)
    return { isMemory, dataDir: IN_MEMORY, socketDir: undefined, remove: () => {} };
  const scratch = mkdtempSync(join(tmpdir(), "quorate-"));
  return {
    isMemory,
    dataDir: dataDir ?? join(scratch, "data"),
    socketDir: scratch,
    remove: () => rmSync(scratch, { recursive: true, force: true }),
  };
}

/** Whether an option is set, as a flag in one of the forms that the program takes, or as a key. */
function isGiven({ flags = [], config = {} }: MemberOptions, name: string): boolean {
  return flags.some((flag) => /^--?([^=]*)/.exec(flag)?.[1] === name) || name in config;
}

async function configOf(options: MemberOptions, place: Place): Promise<ServerConfig> {
  const defaults = await defaultsOf(options, place);
  const readFile = (path: string) => readFileSync(path, "utf8");
  const invocation =
    options.config === undefined
      ? await loadConfig([...asFlags(defaults), ...(options.flags ?? [])], {}, readFile)
      : configOfObject({ ...defaults, ...options.config }, "config", readFile);
  if (invocation.kind !== "run") {
    const flag = `--${invocation.kind}`;
    throw new StartError("NothingToRun", `${flag} runs no member: leave it out of "flags"`);
  }
  const { config, notices } = invocation;
  if (place.isMemory && (config.clientTls?.selfCert ?? config.peerTls?.selfCert) !== undefined)
    throw new StartError("NeedsDirectory", "a member in memory keeps no certificates: set dataDir");
  const logger = options.logger ?? silentLogger;
  for (const notice of notices) logger[notice.level](notice.msg, notice.fields);
  return config;
}

function asFlags(values: Readonly<Record<string, string>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
}

/** What counts where the options do not say another: by key, which is the flag's name too. */
async function defaultsOf(options: MemberOptions, place: Place): Promise<Record<string, string>> {
  const { dataDir, socketDir, isMemory } = place;
  const values: Record<string, string> = { "data-dir": dataDir };
  if (isMemory && !isGiven(options, "quota-backend-bytes"))
    values["quota-backend-bytes"] = `${MEMORY_QUOTA_BYTES}`;
  if (!isGiven(options, "listen-client-urls")) {
    const client =
      options.isPrivate && socketDir !== undefined
        ? `unix://${join(socketDir, "client")}`
        : await freeUrl();
    values["listen-client-urls"] = client;
    if (!isGiven(options, "advertise-client-urls")) values["advertise-client-urls"] = client;
  }
  if (!isGiven(options, "listen-peer-urls")) {
    const peer = socketDir === undefined ? await freeUrl() : `unix://${join(socketDir, "peer")}`;
    if (!isGiven(options, "name")) values["name"] = "embedded";
    values["listen-peer-urls"] = peer;
    values["initial-advertise-peer-urls"] = peer;
  }
  return values;
}

async function start(
  config: ServerConfig,
  options: MemberOptions,
  place: Place,
  platform: Platform,
): Promise<LaunchedMember> {
  const { serve } = await import("@quorate/server/node");
  const { clock = nodeClock, around, adapt = (deps) => deps } = platform;
  const memory = place.isMemory ? (platform.memory ?? newMemory()) : undefined;
  const events = new EventEmitter<MemberEvents>();
  const end = new End(events);
  const observer = new Observer(events);
  const serving = await serve(config, {
    clock,
    logger: options.logger ?? silentLogger,
    walSegmentBytes: WAL_SEGMENT_BYTES,
    adapt: (deps) => adapt({ ...deps, ...memory, observer }),
    ...(around !== undefined && { around }),
    onEnd: (error) => end.byItself(error),
  });
  observer.memberId = serving.member.id;
  void serving.member.ready.then(() => {
    if (!end.hasEnded) events.emit("ready");
  });
  const { electionTimeoutMs } = config;
  const mostMs = electionTimeoutMs * (options.maxHeldShare ?? MAX_HELD_SHARE);
  const watchdog = watchLoop(clock, mostMs, (heldMs) => {
    options.logger?.warn("the program held the event loop: heartbeats of this member were late", {
      "held-ms": Math.round(heldMs),
      "election-timeout-ms": electionTimeoutMs,
    });
    events.emit("held", { heldMs, electionTimeoutMs });
  });
  void end.promise.catch(() => {}).then(() => watchdog.cancel());
  const links = new Set<LocalLink>();
  const ending = async (close: () => Promise<void>): Promise<void> => {
    await close();
    for (const link of links) link.lose("the member has stopped");
    place.remove();
    end.over(undefined);
  };
  const stop = () => end.once(() => ending(() => serving.stop()));
  const services = {
    get current() {
      return end.hasEnded ? undefined : serving.services;
    },
  };
  const endpoints = config.advertiseClientUrls.map((url) => url.text);
  return {
    endpoints,
    dataDir: place.isMemory ? IN_MEMORY : config.dataDir,
    events,
    member: serving.member,
    ready: serving.member.ready,
    ended: end.promise,
    client: (clientOptions = {}) => {
      const link = new LocalLink(endpoints[0] ?? "", services, clock);
      links.add(link);
      const openLink = (endpoint: string) => {
        throw new RangeError(`a client in the process reaches its member alone, not ${endpoint}`);
      };
      return clientOver([link], { openLink, first: 0 }, clientOptions);
    },
    kill: () => end.once(() => ending(() => serving.kill())),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Files in memory, of a size that has a bound. */
export function newMemory(options: MemoryDiskOptions = {}): Memory & { readonly disk: MemoryDisk } {
  const disk = new MemoryDisk({ capacityBytes: MEMORY_DISK_BYTES, ...options });
  return { disk, keyspaces: new MemoryKeyspaceOpener(disk) };
}

/** Tells listeners what the member tells. */
class Observer implements MemberObserver {
  readonly #events: EventEmitter<MemberEvents>;
  #alarms = "";
  memberId: bigint | undefined;

  constructor(events: EventEmitter<MemberEvents>) {
    this.#events = events;
  }

  leaderChanged(leader: bigint): void {
    this.#events.emit("leader", { leader, isLeader: leader === this.memberId });
  }

  alarmsChanged(raised: Parameters<MemberObserver["alarmsChanged"]>[0]): void {
    const alarms = raised.list().map(({ memberId, type }) => ({ memberID: memberId, alarm: type }));
    const text = alarms.map(({ memberID, alarm }) => `${memberID} ${alarm}`).join();
    if (text === this.#alarms) return;
    this.#alarms = text;
    this.#events.emit("alarms", alarms);
  }
}

/** How a member ends: once, by its owner or by itself. */
export class End {
  readonly #events: EventEmitter<MemberEvents>;
  readonly #settled = Promise.withResolvers<void>();
  #ending: Promise<void> | undefined;
  hasEnded = false;

  constructor(events: EventEmitter<MemberEvents>) {
    this.#events = events;
    // A program that does not look at `ended` is not to end by an unhandled rejection.
    this.#settled.promise.catch(() => {});
  }

  get promise(): Promise<void> {
    return this.#settled.promise;
  }

  /** Ends it the first time, and later waits for that. */
  once(close: () => Promise<void>): Promise<void> {
    this.#ending ??= close();
    return this.#ending;
  }

  byItself(error: unknown): void {
    if (this.#ending === undefined) this.over(error);
  }

  /** It has ended. @param error why it had to; undefined for an end in order */
  over(error: unknown): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    if (error === undefined) this.#settled.resolve();
    else this.#settled.reject(error);
    this.#events.emit("closed", error);
  }
}

async function freeUrl(): Promise<string> {
  const [port] = await freePorts(1);
  return `http://127.0.0.1:${port}`;
}

/** Ports of 127.0.0.1 on which no process listens now, each another one. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<Server>((resolve, reject) => {
          const server = createServer();
          server.once("error", reject);
          server.listen(0, "127.0.0.1", () => resolve(server));
        }),
    ),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
