/**
 * Starts a member in this process, for tests and for programs that keep their state in it:
 *
 *     await using member = await startMember();
 *     const client = connect({ endpoints: member.endpoints });
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CALLBACK,
  checkOptions,
  FLAG,
  type Logger,
  OBJECT,
  type Shape,
  silentLogger,
  TEXT,
  TEXTS,
} from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { CodedError } from "@quorate/proto";
import { loadConfig, type ServerConfig } from "@quorate/server";

export interface MemberOptions {
  /** Made where it is missing, and kept. Default: a temporary directory, which `stop` removes. */
  readonly dataDir?: string;
  /**
   * Flags of the program `quorate`, such as "--quota-backend-bytes=8589934592". Variables ETCD_* do
   * not count. Without --listen-client-urls the member listens on a free port of 127.0.0.1;
   * without --listen-peer-urls it is a cluster of one.
   */
  readonly flags?: readonly string[];
  /**
   * Listen on a unix socket that only this user can open, and on no port; not beside
   * --listen-client-urls.
   */
  readonly isPrivate?: boolean;
  /** Default: no logs. */
  readonly logger?: Logger;
}

/** A member that serves. */
export interface RunningMember extends AsyncDisposable {
  /** Its client URLs, for connect(). */
  readonly endpoints: readonly string[];
  readonly dataDir: string;
  /** Resolves when the member takes part in a cluster that has a leader. */
  readonly ready: Promise<void>;
  /**
   * Resolves after `stop`, or after the member was removed from its cluster; rejects if it had to
   * end, for example because its disk is full.
   */
  readonly ended: Promise<void>;
  /** Transfers leadership, completes calls in progress, syncs and closes. Can be repeated. */
  stop(): Promise<void>;
}

/** The flags ask for something else than to run a member. */
export class StartError extends CodedError<"NothingToRun"> {
  constructor(flag: string) {
    super("StartError", "NothingToRun", `${flag} runs no member: leave it out of "flags"`);
  }
}

const MEMBER_SHAPE: Shape<MemberOptions> = {
  dataDir: TEXT,
  flags: TEXTS,
  isPrivate: FLAG,
  logger: {
    name: "a Logger, with debug, info, warn, error and child",
    is: (value) =>
      OBJECT.is(value) &&
      ["debug", "info", "warn", "error", "child"].every((name) =>
        CALLBACK.is((value as Record<string, unknown>)[name]),
      ),
  },
};

/** A segment is written with zeros before its first use, so a large one delays the first start. */
const WAL_SEGMENT_BYTES = 8_000_000;

/** A free port can be taken before the member listens on it. */
const MAX_ATTEMPTS = 3;

/**
 * Starts a member; resolves when it serves. A member that is a cluster of its own is ready then.
 * Rejects with ConfigError for flags that no member starts with, and with Error if an address is
 * taken, a file cannot be read, or the member was removed from its cluster; then nothing is left
 * behind but a directory that was given.
 */
export async function startMember(options: MemberOptions = {}): Promise<RunningMember> {
  checkOptions("startMember", options, MEMBER_SHAPE);
  const place = makePlace(options.dataDir);
  try {
    for (let attempt = 1; ; attempt++) {
      try {
        return await start(await configOf(options, place), options.logger ?? silentLogger, place);
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
  readonly dataDir: string;
  /** For sockets: the path of one may have 107 bytes, which data directories often exceed. */
  readonly socketDir: string;
  remove(): void;
}

function makePlace(dataDir: string | undefined): Place {
  const scratch = mkdtempSync(join(tmpdir(), "quorate-"));
  return {
    dataDir: dataDir ?? join(scratch, "data"),
    socketDir: scratch,
    remove: () => rmSync(scratch, { recursive: true, force: true }),
  };
}

/** Whether a flag is among the options, in one of the forms that the program takes. */
function isGiven({ flags = [] }: MemberOptions, name: string): boolean {
  return flags.some((flag) => [`-${name}`, `--${name}`].includes(flag.split("=", 1)[0]));
}

async function configOf(options: MemberOptions, place: Place): Promise<ServerConfig> {
  const flags = ["--data-dir", place.dataDir];
  if (!isGiven(options, "listen-client-urls")) {
    const client = options.isPrivate
      ? `unix://${join(place.socketDir, "client")}`
      : `http://127.0.0.1:${await freePort()}`;
    flags.push("--listen-client-urls", client);
    if (!isGiven(options, "advertise-client-urls")) flags.push("--advertise-client-urls", client);
  }
  if (!isGiven(options, "listen-peer-urls")) {
    const peer = `unix://${join(place.socketDir, "peer")}`;
    const name = isGiven(options, "name") ? [] : ["--name", "embedded"];
    flags.push(...name, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer);
  }
  const given = [...flags, ...(options.flags ?? [])];
  const invocation = await loadConfig(given, {}, (path) => readFileSync(path, "utf8"));
  if (invocation.kind !== "run") throw new StartError(`--${invocation.kind}`);
  const logger = options.logger ?? silentLogger;
  for (const notice of invocation.notices) logger[notice.level](notice.msg, notice.fields);
  return invocation.config;
}

async function start(config: ServerConfig, logger: Logger, place: Place): Promise<RunningMember> {
  const { serve } = await import("@quorate/server/node");
  const end = Promise.withResolvers<void>();
  // A program that does not look at `ended` is not to end by an unhandled rejection.
  end.promise.catch(() => {});
  let stopping: Promise<void> | undefined;
  const serving = await serve(config, {
    clock: nodeClock,
    logger,
    walSegmentBytes: WAL_SEGMENT_BYTES,
    onEnd: (error) => {
      if (stopping !== undefined) return;
      if (error === undefined) end.resolve();
      else end.reject(error);
    },
  });
  const stopOnce = async (): Promise<void> => {
    await serving.stop();
    place.remove();
    end.resolve();
  };
  const stop = () => {
    stopping ??= stopOnce();
    return stopping;
  };
  return {
    endpoints: config.advertiseClientUrls.map((url) => url.text),
    dataDir: config.dataDir,
    ready: serving.member.ready,
    ended: end.promise,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** A port of 127.0.0.1 on which no process listens now. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });
}
