/**
 * Calls other API servers over HTTPS, with this server's client certificate. Connections are kept
 * for each server, as many as there are requests at a time (MAX_FORWARDED_REQUESTS).
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Agent } from "node:https";
import type { Duplex } from "node:stream";
import { tlsContext } from "@quorate/host";
import type {
  BackendCall,
  BackendListener,
  BackendPlace,
  BackendRequest,
  Backends,
  BackendTunnel,
} from "../src/aggregation/backends.ts";
import type { Pair } from "./certificates.ts";
import { goReason } from "./go-errors.ts";
import { KeptAgents } from "./kept-agents.ts";

/** Until the connection is there. */
const CONNECT_TIMEOUT_MS = 30_000;
/** Connections to one server that wait for a request. */
const MAX_IDLE_CONNECTIONS = 16;
/** Requests that may be sent again on a new connection, where a kept one was closed. */
const REPEATABLE = new Set(["GET", "HEAD", "OPTIONS"]);

type Listened = Omit<BackendListener, "data">;

export class HttpsBackends implements Backends {
  readonly #client: Pair | undefined;
  readonly #agents = new KeptAgents<Agent>((agent) => agent.destroy());

  /** @param client this server's certificate; undefined: it has none to show */
  constructor(client: Pair | undefined) {
    this.#client = client;
  }

  call(request: BackendRequest, listener: BackendListener): BackendCall {
    let sent: ClientRequest | undefined;
    let response: IncomingMessage | undefined;
    let isOver = false;
    const over = (last: () => void): void => {
      if (isOver) return;
      isOver = true;
      last();
    };
    const listened: Listened & { arrived(message: IncomingMessage): void } = {
      arrived(message) {
        response = message;
        message.on("data", (bytes: Buffer) => isOver || listener.data(bytes));
      },
      responded: (status, headers) => isOver || listener.responded(status, headers),
      ended: () => over(() => listener.ended()),
      failed: (reason) => over(() => listener.failed(reason)),
      upgraded: (headers, tunnel) => {
        if (isOver) tunnel.destroy();
        else over(() => listener.upgraded(headers, tunnel));
      },
    };
    const send = (): void => {
      if (isOver) return;
      try {
        sent = this.#send(request, listened, (isRepeated) => {
          if (isRepeated) send();
        });
      } catch (error) {
        // A header that cannot be sent.
        listened.failed(`net/http: ${(error as Error).message}`);
      }
    };
    queueMicrotask(send);
    return {
      pause: () => response?.pause(),
      resume: () => response?.resume(),
      abort: () => over(() => sent?.destroy()),
    };
  }

  /** Ends all connections. */
  close(): void {
    for (const agent of this.#agents.takeAll()) agent.destroy();
  }

  #send(
    { place, method, path, headers, body }: BackendRequest,
    listener: Listened & { arrived(message: IncomingMessage): void },
    again: (isRepeated: boolean) => void,
  ): ClientRequest {
    const { request } = process.getBuiltinModule("node:https");
    const { host, port, serverName } = place;
    const sent = request({
      host,
      port,
      method,
      path,
      headers: headers as Record<string, string | string[]>,
      servername: serverName,
      agent: this.#agentOf(place),
    });
    sent.on("socket", (socket) => {
      if (!socket.connecting) return;
      const timer = setTimeout(() => sent.destroy(new Error("i/o timeout")), CONNECT_TIMEOUT_MS);
      socket.once("secureConnect", () => clearTimeout(timer));
      socket.once("close", () => clearTimeout(timer));
    });
    let hasResponse = false;
    sent.on("response", (message) => {
      hasResponse = true;
      listener.responded(message.statusCode ?? 0, fieldsOf(message.headers));
      listener.arrived(message);
      message.on("end", () => listener.ended());
      message.on("error", (error) => listener.failed(goReason(error)));
    });
    sent.on("upgrade", (message, socket, head) => {
      hasResponse = true;
      listener.upgraded(fieldsOf(message.headers), tunnelOf(socket, head));
    });
    sent.on("error", (error: NodeJS.ErrnoException) => {
      const wasClosed =
        sent.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
      if (wasClosed && !hasResponse && REPEATABLE.has(method)) again(true);
      else listener.failed(goReason(error));
    });
    sent.end(body);
    return sent;
  }

  #agentOf({ host, port, serverName, caPem, isInsecure }: BackendPlace): Agent {
    return this.#agents.of([host, port, serverName, caPem, isInsecure], () => {
      const https = process.getBuiltinModule("node:https");
      const { certPem: cert, keyPem } = this.#client ?? {};
      return new https.Agent({
        ...tlsContext({ trusted: caPem, cert, key: keyPem }),
        rejectUnauthorized: !isInsecure,
        keepAlive: true,
        maxFreeSockets: MAX_IDLE_CONNECTIONS,
      });
    });
  }
}

function fieldsOf(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
}

/** @param head bytes that followed the response's head */
function tunnelOf(socket: Duplex, head: Buffer): BackendTunnel {
  socket.on("error", () => socket.destroy());
  return {
    send: (bytes) => socket.destroyed || socket.write(bytes),
    onData(listener) {
      if (head.length > 0) listener(head);
      socket.on("data", listener);
    },
    onClose(listener) {
      socket.on("end", () => socket.destroy());
      socket.once("close", listener);
    },
    onDrain: (listener) => void socket.on("drain", listener),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    destroy: () => void socket.destroy(),
  };
}
