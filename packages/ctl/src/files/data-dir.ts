/**
 * The directories of a stopped member. Reading them changes nothing, except that LevelDB tidies its
 * files whenever it is opened.
 */

import { badArguments, Exit, ExitCode } from "@quorate/cli";
import { DiskError, damagedLogSteps, parentOf, trimEndOf } from "@quorate/host";
import { levelKeyspaces, nodeDisk } from "@quorate/host/node";
import { idToHex } from "@quorate/proto";
import { Store, StoreDamageError } from "@quorate/store";
import { memberOf, WalDamageError, WalError } from "@quorate/wal";

/** The only argument of a command: a directory that must exist. Throws Exit. */
export function directoryArgument(args: readonly string[], command: string): string {
  const [dir] = args;
  if (dir === undefined || args.length > 1)
    throw badArguments(`${command} needs one argument, a directory`);
  if (nodeDisk.stat(dir)?.kind !== "directory")
    throw new Exit(ExitCode.error, `${dir} is not a directory`);
  return plainPath(dir);
}

/** A path without the slashes at its end; "/" stays. */
export function plainPath(path: string): string {
  return trimEndOf(path, "/") || path.slice(0, 1);
}

/** Throws Exit for a data directory of etcd. */
export function refuseForeign(dataDir: string): void {
  if (nodeDisk.stat(`${dataDir}/member/snap/db`)?.kind === "file") {
    throw new Exit(
      ExitCode.error,
      `${dataDir} is a data directory of etcd itself; use etcdutl for it`,
    );
  }
}

/** The log of a data directory, or the directory itself if it is a log. */
export function logDirectory(dir: string): string {
  const inside = `${dir}/member/wal`;
  return nodeDisk.stat(inside)?.kind === "directory" ? inside : dir;
}

/** The words about a damaged log, with the next commands. */
function aboutDamagedLog({ message, path }: WalDamageError): string {
  const walDir = parentOf(path);
  const dataDir = /^(.+)\/member\/wal$/.exec(walDir)?.[1] ?? "DATA-DIR";
  const id = memberOf(nodeDisk, walDir);
  const steps = damagedLogSteps(id === undefined ? { dataDir } : { dataDir, id: idToHex(id) });
  return `${message}. ${steps}`;
}

/** The keyspace of a data directory, or the directory itself if it is one. */
export function keyspaceDirectory(dir: string): string {
  for (const inside of [`${dir}/member/store/db`, `${dir}/db`])
    if (nodeDisk.stat(inside)?.kind === "directory") return inside;
  return dir;
}

/** The directory of a data directory's store. Throws Exit with etcd's text if there is none. */
export function storeDirectory(dataDir: string): string {
  refuseForeign(dataDir);
  const dir = `${dataDir}/member/store/db`;
  if (nodeDisk.stat(dir)?.kind !== "directory")
    throw new Exit(ExitCode.error, `stat ${dir}: no such file or directory`);
  return dir;
}

/**
 * Runs `task` on the store of a stopped member's data directory. Throws Exit if there is none.
 */
export async function withStore<T>(
  dataDir: string,
  task: (store: Store) => Promise<T>,
): Promise<T> {
  refuseForeign(dataDir);
  const dir = `${dataDir}/member/store`;
  // Opening would create an empty store.
  if (nodeDisk.stat(`${dir}/db`)?.kind !== "directory")
    throw new Exit(
      ExitCode.error,
      `${dataDir} has no store: there is no directory member/store/db`,
    );
  const store = await Store.open(levelKeyspaces, dir);
  try {
    return await task(store);
  } finally {
    await store.close({ flush: false });
  }
}

/**
 * Runs a command; operating errors of files and requests become an Exit with their text.
 * @param explained the text for errors of the command's own; undefined for any other
 */
export async function reportingErrors(
  task: () => Promise<void>,
  explained: (error: unknown) => string | undefined = () => undefined,
): Promise<void> {
  try {
    await task();
  } catch (error) {
    const text = explained(error);
    if (text !== undefined) throw new Exit(ExitCode.error, text);
    if (error instanceof WalDamageError) throw new Exit(ExitCode.error, aboutDamagedLog(error));
    const isExpected =
      error instanceof DiskError ||
      error instanceof WalError ||
      error instanceof StoreDamageError ||
      (error instanceof Error && error.name === "EtcdError");
    throw isExpected ? new Exit(ExitCode.error, error.message) : error;
  }
}
