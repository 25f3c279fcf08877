/** Files of unix sockets. */
import { lstatSync, unlinkSync } from "node:fs";

/**
 * Removes the file that a socket of this path left behind. A unix socket's file stays when its
 * server ends; like etcd, a server replaces an existing one. Anything but a socket is kept, so that
 * listening fails.
 */
export function removeStaleSocket(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) unlinkSync(path);
}
