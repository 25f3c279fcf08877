/** Addresses of sockets as log lines and services see them. */
import { lstatSync, unlinkSync } from "node:fs";
import type { Socket } from "node:net";

/**
 * "host:port" of the other end (brackets around an IPv6 address), "@" for a unix socket, as Go
 * prints them.
 */
export function addressOf(socket: Socket): string {
  // A TLS socket has forgotten its address by the time a handshake has failed; the one beneath it
  // has not.
  const known =
    socket.remoteAddress === undefined
      ? ((socket as { _parent?: Socket })._parent ?? socket)
      : socket;
  const { remoteAddress, remotePort } = known;
  if (remoteAddress === undefined) return "@";
  return remoteAddress.includes(":")
    ? `[${remoteAddress}]:${remotePort}`
    : `${remoteAddress}:${remotePort}`;
}

/** The other end without its port; "@" for a unix socket. */
export function hostOf(socket: Socket): string {
  return socket.remoteAddress ?? "@";
}

/** A unix socket outlives its server's end; as etcd, we take the place of one that is there. */
export function removeStaleSocket(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) unlinkSync(path);
}
