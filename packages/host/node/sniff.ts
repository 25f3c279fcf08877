/** Inspects the first bytes of a connection to choose its protocol. */
import type { Socket } from "node:net";
import type { Clock } from "../src/clock.ts";

/** HTTP/2 opens with a fixed preface (RFC 9113 section 3.4) that no HTTP/1 request begins with. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
/** The part of the preface that no HTTP/1 request starts with. */
const DECISIVE_BYTES = 14;

/** Callbacks of `sniff`. */
export interface Sniffing<T> {
  /** Decides by the first bytes received so far; undefined if more are needed. */
  decide(seen: Buffer): T | undefined;
  /** Called with the decision; the socket's bytes are still unread. */
  decided(decision: T): void;
  /** Called without a decision in time; the socket's bytes are still unread. */
  late(): void;
}

/**
 * Reads the first bytes of a connection until they decide, for at most `timeoutMs`. A connection
 * that ends before is destroyed.
 */
export function sniff<T>(
  socket: Socket,
  clock: Clock,
  timeoutMs: number,
  { decide, decided, late }: Sniffing<T>,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const stop = () => {
    timer.cancel();
    socket.off("readable", read);
    socket.off("close", stop);
    socket.off("end", ended);
  };
  const restore = () => {
    stop();
    if (seen.length > 0) socket.unshift(seen);
  };
  const timer = clock.after(timeoutMs, () => {
    restore();
    late();
  });
  const ended = () => socket.destroy();
  const read = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const decision = decide(seen);
    if (decision === undefined) return;
    restore();
    decided(decision);
  };
  socket.on("readable", read);
  socket.on("end", ended);
  socket.on("close", stop);
}

/**
 * Calls `decided` once the first bytes determine the protocol; the socket's bytes are still unread
 * then. A connection that ends, or stays undecided for `timeoutMs`, is destroyed.
 */
export function sniffProtocol(
  socket: Socket,
  clock: Clock,
  timeoutMs: number,
  decided: (isHttp2: boolean) => void,
): void {
  const decide = (seen: Buffer): boolean | undefined => {
    const length = Math.min(seen.length, DECISIVE_BYTES);
    const matches = PREFACE.compare(seen, 0, length, 0, length) === 0;
    return matches && length < DECISIVE_BYTES ? undefined : matches;
  };
  sniff(socket, clock, timeoutMs, { decide, decided, late: () => socket.destroy() });
}
