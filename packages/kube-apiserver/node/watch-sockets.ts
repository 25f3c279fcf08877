/** WebSockets of watches, on the engine's connections. A client that answers no ping is gone. */
import type { Clock } from "@quorate/host";
import { serveWebSocket } from "@quorate/rpc/node";
import type { SocketOpener } from "../src/handlers/watch-output.ts";

/** Messages of a client mean nothing here; a longer one ends the connection. */
export const MAX_CLIENT_MESSAGE_BYTES = 4096;
export const PING_PERIOD_MS = 60_000;
const GOING_AWAY = 1001;

/** Opens WebSockets; each is pinged from then on. */
export function watchSockets(clock: Clock): SocketOpener {
  return (exchange, { headers, onDrain, onClose }) => {
    let isAlive = true;
    const socket = serveWebSocket(exchange, {
      maxMessageBytes: MAX_CLIENT_MESSAGE_BYTES,
      headers,
      onMessage: () => {},
      onDrain,
      onPong: () => {
        isAlive = true;
      },
      onClose: () => {
        pings.cancel();
        onClose();
      },
    });
    const pings = clock.every(PING_PERIOD_MS, () => {
      if (!isAlive) socket?.close(GOING_AWAY, "no answer to a ping");
      isAlive = false;
      socket?.ping();
    });
    if (socket === undefined) pings.cancel();
    return (
      socket && {
        send: (message, isBinary) => socket.send(message, isBinary),
        close: (code) => socket.close(code),
      }
    );
  };
}
