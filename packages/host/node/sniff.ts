/** Which protocol a connection speaks: HTTP/2 opens with a fixed preface (RFC 9113 section 3.4) that no HTTP/1 request begins with. */
import type { Socket } from "node:net";
import type { Clock } from "../src/clock.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
/** As much of the preface as tells it from every HTTP/1 request. */
const TELLING_BYTES = 14;

/**
 * Calls `decided` once the first bytes tell the protocol; the socket then still has all of its bytes to read. A connection that ends, or
 * does not tell within `timeoutMs`, is destroyed instead.
 */
export function sniffProtocol(socket: Socket, clock: Clock, timeoutMs: number, decided: (isHttp2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const timer = clock.after(timeoutMs, () => socket.destroy());
  const stop = () => {
    timer.cancel();
    socket.off("readable", look);
    socket.off("close", stop);
    socket.off("end", ended);
  };
  const ended = () => socket.destroy();
  const look = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, TELLING_BYTES);
    const matches = PREFACE.compare(seen, 0, length, 0, length) === 0;
    if (matches && length < TELLING_BYTES) return;
    stop();
    socket.unshift(seen);
    decided(matches);
  };
  socket.on("readable", look);
  socket.on("end", ended);
  socket.on("close", stop);
}
