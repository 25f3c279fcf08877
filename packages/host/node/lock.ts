/**
 * A lock between processes that the kernel releases when its holder ends, however it ends.
 *
 * Node has neither flock nor fcntl, but it has SQLite, whose transactions use fcntl byte-range
 * locks on Linux and macOS: an exclusive transaction held open on an empty file is such a lock.
 * Nothing is ever written to that file. A file with a process id would need guesses: ids are
 * reused, and two containers that share a volume see different ids. The holder's id is in a second
 * file (PATH.pid) only to name it in errors.
 *
 * One rule of fcntl locks: a process loses the lock when it closes ANY descriptor of the locked
 * file. So no other code may open that file.
 */
import * as fs from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { DiskError, type DiskLock } from "../src/disk.ts";
import { toDiskError } from "./errors.ts";

const SQLITE_BUSY = 5;
const SQLITE_NOTADB = 26;

/**
 * The locks of this process. The garbage collector would close an unreferenced connection.
 */
const held = new Set<DatabaseSync>();

/**
 * Makes the empty lock file, for its owner only. An existing file must not be opened (see above),
 * only checked by stat.
 */
function createOnce(path: string): void {
  try {
    try {
      fs.closeSync(fs.openSync(path, "wx", 0o600));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      fs.accessSync(path, fs.constants.R_OK | fs.constants.W_OK);
    }
  } catch (error) {
    throw toDiskError(error, path);
  }
}

/** The live process that the pid file names, or undefined. */
function holderOf(pidPath: string): number | undefined {
  try {
    const pid = Number(fs.readFileSync(pidPath, "latin1"));
    if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
    try {
      process.kill(pid, 0);
    } catch (error) {
      // EPERM: the process belongs to another user and is alive.
      if ((error as NodeJS.ErrnoException).code === "ESRCH") return undefined;
    }
    return pid;
  } catch {
    return undefined;
  }
}

/**
 * Takes the lock named by `path` or throws a DiskError: "Locked" if it is held, by this process or
 * another.
 */
export function lockFile(path: string): DiskLock {
  createOnce(path);
  const pidPath = `${path}.pid`;
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(path);
    // The journal in memory: no file beside the lock file.
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    db?.close();
    const { errcode } = error as { errcode?: number };
    if (errcode === SQLITE_BUSY) {
      const pid = holderOf(pidPath);
      const holder =
        pid === undefined
          ? "another process"
          : pid === process.pid
            ? `this process (${pid})`
            : `process ${pid}`;
      throw new DiskError("Locked", path, `held by ${holder}`, error);
    }
    if (errcode === SQLITE_NOTADB)
      throw new DiskError("Io", path, "has content, so it is not a lock file", error);
    throw new DiskError("Io", path, `cannot be locked: ${(error as Error).message}`, error);
  }
  try {
    fs.writeFileSync(pidPath, String(process.pid), { mode: 0o600 });
  } catch {
    // The lock is held all the same; errors will name "another process". A full disk must not
    // prevent a start.
  }
  held.add(db);
  return {
    release() {
      if (!held.delete(db)) return;
      fs.rmSync(pidPath, { force: true });
      db.close();
    },
  };
}

/**
 * Whether a process of this machine has locked a file, as etcd locks its database and log while it
 * runs. False where the system does not list locks (all but Linux). The file is not opened.
 */
export function isLocked(path: string): boolean {
  let listed: string;
  let inode: bigint;
  try {
    listed = fs.readFileSync("/proc/locks", "latin1");
    inode = fs.statSync(path, { bigint: true }).ino;
  } catch {
    return false;
  }
  // 1: FLOCK  ADVISORY  WRITE 5678 fe:00:10217809 0 EOF
  return listed.split("\n").some((line) => line.includes(`:${inode} `));
}
