/** Looking at what a connection begins with, before somebody is chosen to serve it. */
import type { Socket } from "node:net";
import type { Clock } from "../src/clock.ts";

/** HTTP/2 opens with a fixed preface (RFC 9113 section 3.4) that no HTTP/1 request begins with. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
/** As much of the preface as tells it from every HTTP/1 request. */
const TELLING_BYTES = 14;

/** What `sniff` asks and tells. */
export interface Sniffing<T> {
  /** What the first bytes, as far as they have come, tell; undefined: nothing yet. */
  tells(seen: Buffer): T | undefined;
  /** They have told; the socket still has all of its bytes to read. */
  decided(what: T): void;
  /** They have not told in time; the socket has all of its bytes to read. */
  late(): void;
}

/**
 * Reads the first bytes of a connection until they tell, for `timeoutMs` at the most. One that ends
 * before is destroyed.
 */
export function sniff<T>(
  socket: Socket,
  clock: Clock,
  timeoutMs: number,
  { tells, decided, late }: Sniffing<T>,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const stop = () => {
    timer.cancel();
    socket.off("readable", look);
    socket.off("close", stop);
    socket.off("end", ended);
  };
  const giveBack = () => {
    stop();
    if (seen.length > 0) socket.unshift(seen);
  };
  const timer = clock.after(timeoutMs, () => {
    giveBack();
    late();
  });
  const ended = () => socket.destroy();
  const look = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const what = tells(seen);
    if (what === undefined) return;
    giveBack();
    decided(what);
  };
  socket.on("readable", look);
  socket.on("end", ended);
  socket.on("close", stop);
}

/**
 * Calls `decided` once the first bytes tell the protocol; the socket then still has all of its
 * bytes to read. A connection that ends, or does not tell within `timeoutMs`, is destroyed instead.
 */
export function sniffProtocol(
  socket: Socket,
  clock: Clock,
  timeoutMs: number,
  decided: (isHttp2: boolean) => void,
): void {
  const tells = (seen: Buffer): boolean | undefined => {
    const length = Math.min(seen.length, TELLING_BYTES);
    const matches = PREFACE.compare(seen, 0, length, 0, length) === 0;
    return matches && length < TELLING_BYTES ? undefined : matches;
  };
  sniff(socket, clock, timeoutMs, { tells, decided, late: () => socket.destroy() });
}
