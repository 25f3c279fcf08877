/** Processes and ports of this machine: who is alive, what it is, and who holds a port. Linux by /proc, elsewhere by ps and lsof. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import * as net from "node:net";

/** The command line of a live process, its arguments joined by spaces; undefined when there is no such process (or only its corpse). */
export function commandLineOf(pid: number): string | undefined {
  if (!existsSync("/proc/self")) return run("ps", ["-o", "command=", "-p", String(pid)]);
  try {
    const text = readFileSync(`/proc/${pid}/cmdline`, "utf8").replace(/\0+$/, "").replaceAll("\0", " ");
    return text === "" ? undefined : text;
  } catch {
    return undefined;
  }
}

/** A process that listens on a port. `pid` is undefined when it belongs to somebody whose processes we may not see. */
export interface PortHolder {
  readonly pid: number | undefined;
  readonly command: string | undefined;
}

/** True if nobody listens on 127.0.0.1:port. */
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

/** Who listens on a TCP port of this machine, on whatever address; undefined if nobody seems to. */
export function portHolder(port: number): PortHolder | undefined {
  if (!existsSync("/proc/net/tcp")) return holderByLsof(port);
  const inodes = ["/proc/net/tcp", "/proc/net/tcp6"].filter((path) => existsSync(path)).flatMap((path) => listeningInodes(path, port));
  if (inodes.length === 0) return undefined;
  const links = new Set(inodes.map((inode) => `socket:[${inode}]`));
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    if (openFiles(pid).some((link) => links.has(link))) return { pid: Number(pid), command: commandLineOf(Number(pid)) };
  }
  return { pid: undefined, command: undefined };
}

/**
 * Columns of /proc/net/tcp: slot, local address:port in hex, remote one, state (0A is listening), queues, timer, retransmits, uid,
 * timeout, inode.
 */
function listeningInodes(path: string, port: number): string[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((columns) => columns[3] === "0A" && Number.parseInt(columns[1]!.split(":")[1]!, 16) === port)
    .map((columns) => columns[9]!);
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
  return pid === undefined ? undefined : { pid: Number(pid), command: commandLineOf(Number(pid)) };
}

/** What the program printed, trimmed; undefined when it printed nothing, failed or is not there. */
function run(program: string, args: readonly string[]): string | undefined {
  try {
    const text = execFileSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    return text === "" ? undefined : text;
  } catch {
    return undefined;
  }
}
