/**
 * The store's files are for the member's own user: keys, values and password hashes are in them.
 * New directories are 0700 and new files 0600. Directories of an earlier release, or those that an
 * operator made, may be open to others:
 *
 *     DATA-DIR              left as it is, with etcd's warning: it may be a mount point or shared
 *                           on purpose
 *     DATA-DIR/member, fixtures, and --wal-dir   closed: only a member uses them
 */
import { chmodSync, statSync } from "node:fs";
import type { Logger } from "@quorate/host";
import type { ServerConfig } from "../src/config/index.ts";

const PRIVATE_DIR_MODE = 0o700;
/** The bits of everybody but the owner. */
const OTHERS = 0o077;

/**
 * The permission bits of a directory that others may enter or read; undefined for a private one,
 * or for none.
 */
function openMode(dir: string): number | undefined {
  const stat = statSync(dir, { throwIfNoEntry: false });
  if (stat === undefined || !stat.isDirectory()) return undefined;
  const mode = stat.mode & 0o777;
  return (mode & OTHERS) === 0 ? undefined : mode;
}

const octal = (mode: number): string => `0${mode.toString(8)}`;

/**
 * Closes a member's directories to others, and warns where that cannot be done. Never throws for
 * what the file system refuses.
 */
export function closeDirectories(
  config: Pick<ServerConfig, "dataDir" | "walDir">,
  logger: Logger,
): void {
  const { dataDir, walDir } = config;
  const dataMode = openMode(dataDir);
  if (dataMode !== undefined) {
    logger.warn("check file permission", {
      error:
        `directory "${dataDir}" exist, but the permission is "${octal(dataMode)}". The recommended permission is "0700" to prevent ` +
        "possible unprivileged access to the data",
    });
  }
  for (const dir of [`${dataDir}/member`, `${dataDir}/fixtures`, walDir]) {
    const mode = openMode(dir);
    if (mode === undefined) continue;
    try {
      chmodSync(dir, PRIVATE_DIR_MODE);
      logger.info("closed a directory of the member to other users", {
        path: dir,
        "mode-before": octal(mode),
        mode: octal(PRIVATE_DIR_MODE),
      });
    } catch (error) {
      logger.warn("failed to close a directory of the member to other users", {
        path: dir,
        mode: octal(mode),
        error: (error as Error).message,
      });
    }
  }
}
