/** Which process holds a TCP connection of 127.0.0.1, as /proc of Linux shows. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** False where there is no /proc. */
export function canFindOwners(): boolean {
  return process.platform === "linux";
}

/** Which of the processes has the socket whose local port is `port`; undefined if none has. */
export function ownerOfPort(port: number, pids: Iterable<number>): number | undefined {
  const inode = inodeOfPort(port);
  if (inode === undefined) return undefined;
  const link = `socket:[${inode}]`;
  for (const pid of pids) if (holds(pid, link)) return pid;
  return undefined;
}

/**
 * A line: `slot local-address:port remote-address:port state queues timer retransmits uid timeout
 * inode`, numbers in hex.
 */
function inodeOfPort(port: number): string | undefined {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  for (const line of readFileSync("/proc/net/tcp", "utf8").split("\n")) {
    const fields = line.trim().split(/\s+/);
    if (fields[1] === local && fields[9] !== undefined && fields[9] !== "0") return fields[9];
  }
  return undefined;
}

function holds(pid: number, link: string): boolean {
  try {
    for (const fd of readdirSync(`/proc/${pid}/fd`)) {
      try {
        if (readlinkSync(`/proc/${pid}/fd/${fd}`) === link) return true;
      } catch {
        // Closed meanwhile.
      }
    }
  } catch {
    // The process has ended.
  }
  return false;
}
