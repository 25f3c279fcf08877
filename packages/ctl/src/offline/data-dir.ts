/**
 * The folders of a stopped member. Looking at them changes nothing but what LevelDB itself tidies
 * up whenever it is opened.
 */
import { DiskError } from "@quorate/host";
import { levelKeyspaces, nodeDisk } from "@quorate/host/node";
import { Store, StoreDamageError } from "@quorate/store";
import { WalDamageError, WalError } from "@quorate/wal";
import { Exit, ExitCode } from "../io.ts";

/** The only argument of a command, a folder that must exist. Throws Exit. */
export function folderArgument(args: readonly string[], command: string): string {
  const [dir] = args;
  if (dir === undefined || args.length > 1)
    throw new Exit(ExitCode.badArguments, `${command} needs one argument, a folder`);
  if (nodeDisk.stat(dir)?.kind !== "directory")
    throw new Exit(ExitCode.error, `${dir} is not a folder`);
  return dir.replace(/(.)\/+$/, "$1");
}

/** Throws Exit for a data directory of etcd's own. */
export function refuseForeign(dataDir: string): void {
  if (nodeDisk.stat(`${dataDir}/member/snap/db`)?.kind === "file") {
    throw new Exit(
      ExitCode.error,
      `${dataDir} is a data directory of etcd itself; use etcdutl for it`,
    );
  }
}

/** The log of a data directory, or the folder itself if it is a log. */
export function logFolder(dir: string): string {
  const inside = `${dir}/member/wal`;
  return nodeDisk.stat(inside)?.kind === "directory" ? inside : dir;
}

/** The keyspace of a data directory, or the folder itself if it is one. */
export function keyspaceFolder(dir: string): string {
  for (const inside of [`${dir}/member/store/db`, `${dir}/db`])
    if (nodeDisk.stat(inside)?.kind === "directory") return inside;
  return dir;
}

/** The folder of a data directory's store. Throws Exit where there is none, in etcd's words. */
export function storeFolder(dataDir: string): string {
  refuseForeign(dataDir);
  const dir = `${dataDir}/member/store/db`;
  if (nodeDisk.stat(dir)?.kind !== "directory")
    throw new Exit(ExitCode.error, `stat ${dir}: no such file or directory`);
  return dir;
}

/**
 * Runs `task` on the store of a stopped member's data directory. Throws Exit where there is none.
 */
export async function withStore<T>(
  dataDir: string,
  task: (store: Store) => Promise<T>,
): Promise<T> {
  refuseForeign(dataDir);
  const dir = `${dataDir}/member/store`;
  // Opening would make an empty store.
  if (nodeDisk.stat(`${dir}/db`)?.kind !== "directory")
    throw new Exit(ExitCode.error, `${dataDir} has no store: there is no folder member/store/db`);
  const store = await Store.open(levelKeyspaces, dir);
  try {
    return await task(store);
  } finally {
    await store.close({ flush: false });
  }
}

/**
 * Runs a command; what is wrong with the files, or with what was asked of them, ends the program
 * with its text.
 */
export async function reportingErrors(task: () => Promise<void>): Promise<void> {
  try {
    await task();
  } catch (error) {
    const isExpected =
      error instanceof DiskError ||
      error instanceof WalDamageError ||
      error instanceof WalError ||
      error instanceof StoreDamageError ||
      (error instanceof Error && error.name === "EtcdError");
    throw isExpected ? new Exit(ExitCode.error, error.message) : error;
  }
}
