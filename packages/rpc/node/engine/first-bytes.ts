/**
 * Detects the protocol of a new connection: HTTP/2 opens with a fixed preface (RFC 9113 section
 * 3.4) that no HTTP/1 request begins with, and TLS with a handshake record (RFC 8446 section 5.1).
 */
import type { Socket } from "node:net";
import { PREFACE } from "../../src/http2/constants.ts";

/** The prefix of the preface that distinguishes it from every HTTP/1 request. */
const DISTINCT_BYTES = 14;

/** The type of a TLS record that belongs to a handshake; no byte of text. */
const TLS_HANDSHAKE = 0x16;

/**
 * Calls `decided` once the first bytes show the protocol; the socket then still has all of its
 * bytes to read.
 */
export function readFirstBytes(socket: Socket, decided: (isHttp2: boolean) => void): void {
  peek(
    socket,
    (seen) => {
      const length = Math.min(seen.length, DISTINCT_BYTES);
      const matches = seen.toString("latin1", 0, length) === PREFACE.slice(0, length);
      return matches && length < DISTINCT_BYTES ? undefined : matches;
    },
    decided,
  );
}

/** The same, for whether the connection begins with a TLS handshake. */
export function readFirstByte(socket: Socket, decided: (isTls: boolean) => void): void {
  peek(socket, (seen) => seen[0] === TLS_HANDSHAKE, decided);
}

/** Reads until `decide` returns what the first bytes, at least one, stand for. */
function peek(
  socket: Socket,
  decide: (seen: Buffer) => boolean | undefined,
  decided: (result: boolean) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const look = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const result = decide(seen);
    if (result === undefined) return;
    socket.off("readable", look);
    socket.off("end", ended);
    socket.unshift(seen);
    decided(result);
  };
  const ended = () => socket.destroy();
  socket.on("readable", look);
  socket.on("end", ended);
}
