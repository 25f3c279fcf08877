/**
 * Keep-alive connections with one request each under way, without an HTTP library: it would cost
 * more than the server. A response is taken to be complete when it ends like the first one.
 */
import { connect, type Socket } from "node:net";

export interface Load {
  readonly port: number;
  readonly connections: number;
  readonly request: Uint8Array;
  /** The last bytes of every response. */
  readonly ending: string;
}

export class Loader {
  readonly #sockets: Socket[] = [];
  readonly #ending: Buffer;
  /** Responses that were received. */
  responses = 0;

  constructor(ending: string) {
    this.#ending = Buffer.from(ending);
  }

  /** Opens the connections and begins. */
  async start({ port, connections, request }: Load): Promise<void> {
    const opened = Array.from({ length: connections }, () => this.#open(port));
    for (const socket of await Promise.all(opened)) {
      this.#sockets.push(socket);
      socket.on("data", (chunk: Buffer) => {
        if (!chunk.subarray(-this.#ending.length).equals(this.#ending)) return;
        this.responses++;
        socket.write(request);
      });
      socket.write(request);
    }
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #open(port: number): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true }, () => resolve(socket));
      socket.on("error", reject);
    });
  }
}
