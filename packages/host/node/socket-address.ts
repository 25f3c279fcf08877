/** Addresses of sockets, for log lines and services. */
import type { Socket } from "node:net";
import { joinHostPort } from "../src/host-port.ts";

/**
 * The remote "host:port" (brackets around an IPv6 address), "@" for a unix socket, as Go prints
 * them.
 */
export function addressOf(socket: Socket): string {
  // After a failed handshake, the TLS socket no longer has its address; the TCP socket beneath it
  // does.
  const known =
    socket.remoteAddress === undefined
      ? ((socket as { _parent?: Socket })._parent ?? socket)
      : socket;
  const { remoteAddress, remotePort } = known;
  if (remoteAddress === undefined) return "@";
  return joinHostPort(remoteAddress, remotePort);
}

/** The remote host without its port; "@" for a unix socket. */
export function hostOf(socket: Socket): string {
  return socket.remoteAddress ?? "@";
}
