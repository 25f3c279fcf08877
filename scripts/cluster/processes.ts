/**
 * Processes and ports of this machine: who is alive, what it is, and who holds a port. Linux by
 * /proc, elsewhere by ps and lsof.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import * as net from "node:net";

/**
 * The command line of a live process, its arguments joined by spaces; undefined when there is no
 * such process (or only its corpse).
 */
export function commandLineOf(pid: number): string | undefined {
  if (!existsSync("/proc/self")) return run("ps", ["-o", "command=", "-p", String(pid)]);
  try {
    const text = readFileSync(`/proc/${pid}/cmdline`, "utf8")
      .split("\0")
      .filter((word) => word !== "")
      .join(" ");
    return text === "" ? undefined : text;
  } catch {
    return undefined;
  }
}

/**
 * True once a process has given back what it held. Its command line goes earlier: a process that
 * ends loses its memory first and its sockets last, when its last thread is gone, and until then
 * its ports are in use.
 */
export function hasEnded(pid: number): boolean {
  if (!existsSync("/proc/self")) return commandLineOf(pid) === undefined;
  try {
    // PID (NAME) STATE ...: a corpse whose parent has not looked at it yet holds nothing any more,
    // unless it has threads that live.
    return readdirSync(`/proc/${pid}/task`).every((thread) => {
      const text = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
      return /^[ZX]/.test(text.slice(text.lastIndexOf(")") + 2));
    });
  } catch (error) {
    // ENOENT and ESRCH: it went while we looked. What we may not read lives.
    return ["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "");
  }
}

/** Who listens on a port. */
export interface PortHolder {
  /** Undefined where it cannot be found: the process is another user's, or is ending. */
  readonly pid: number | undefined;
  readonly command: string | undefined;
  /** The user that the socket belongs to; undefined where the system does not say. */
  readonly userId: number | undefined;
}

/** What is asked about a port. */
export interface PortView {
  isFree(port: number): Promise<boolean>;
  holder(port: number): PortHolder | undefined;
  ownUserId(): number | undefined;
  delay(ms: number): Promise<void>;
}

/**
 * A port whose holder cannot be found may be one of a process that is ending: it is waited for so
 * long.
 */
const ENDING_LIMIT_MS = 5000;
const ENDING_POLL_MS = 50;

/** Why a port cannot be had, with what is known of who holds it; undefined once it is free. */
export async function portTrouble(
  port: number,
  view: PortView = systemPorts,
): Promise<string | undefined> {
  let holder: PortHolder | undefined;
  for (let waitedMs = 0; ; waitedMs += ENDING_POLL_MS) {
    if (await view.isFree(port)) return undefined;
    holder = view.holder(port);
    if (holder?.pid !== undefined && holder.command !== undefined)
      return `is in use by pid ${holder.pid}: ${holder.command}`;
    if (waitedMs >= ENDING_LIMIT_MS) break;
    await view.delay(ENDING_POLL_MS);
  }
  if (holder === undefined)
    return "is in use, but no process listens there: a connection of another program may use it as its own port";
  if (holder.pid !== undefined) return `is in use by pid ${holder.pid}, which is ending`;
  const isOther = holder.userId !== undefined && holder.userId !== view.ownUserId();
  const whose = isOther
    ? `a process of the user with the id ${holder.userId}`
    : "a process that cannot be determined";
  return `is in use by ${whose}; as root, "ss -ltnp sport = :${port}" shows it`;
}

const systemPorts: PortView = {
  isFree: isPortFree,
  holder: portHolder,
  ownUserId: () => process.getuid?.(),
  delay: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

/** True if no process listens on 127.0.0.1:port. */
export async function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(false);
      else reject(error);
    });
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/**
 * The process that listens on a TCP port of this machine, on any address; undefined if none is
 * found.
 */
export function portHolder(port: number): PortHolder | undefined {
  if (!existsSync("/proc/net/tcp")) return holderByLsof(port);
  const sockets = ["/proc/net/tcp", "/proc/net/tcp6"]
    .filter((path) => existsSync(path))
    .flatMap((path) => listeningSockets(path, port));
  if (sockets.length === 0) return undefined;
  const { userId } = sockets[0];
  const links = new Set(sockets.map(({ inode }) => `socket:[${inode}]`));
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    if (openFiles(pid).some((link) => links.has(link)))
      return { pid: Number(pid), command: commandLineOf(Number(pid)), userId };
  }
  return { pid: undefined, command: undefined, userId };
}

/**
 * Columns of /proc/net/tcp: slot, local address:port in hex, remote one, state (0A is listening),
 * queues, timer, retransmits, uid, timeout, inode.
 */
function listeningSockets(path: string, port: number): { inode: string; userId: number }[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(
      (columns) => columns[3] === "0A" && Number.parseInt(columns[1].split(":")[1], 16) === port,
    )
    .map((columns) => ({ inode: columns[9], userId: Number(columns[7]) }));
}

function openFiles(pid: string): string[] {
  let names: string[];
  try {
    names = readdirSync(`/proc/${pid}/fd`);
  } catch {
    return [];
  }
  return names.flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch {
      return [];
    }
  });
}

function holderByLsof(port: number): PortHolder | undefined {
  const pid = run("lsof", ["-nP", "-t", `-iTCP:${port}`, "-sTCP:LISTEN"])?.split("\n")[0];
  return pid === undefined
    ? undefined
    : { pid: Number(pid), command: commandLineOf(Number(pid)), userId: undefined };
}

/** What the program printed, trimmed; undefined when it printed nothing, failed or is not there. */
function run(program: string, args: readonly string[]): string | undefined {
  try {
    const text = execFileSync(program, args, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
    return text === "" ? undefined : text;
  } catch {
    return undefined;
  }
}
