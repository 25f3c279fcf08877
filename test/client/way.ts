/** A way to a member that a test cuts: now, or when the member's next response comes. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class Way {
  readonly endpoint: string;
  /** Whether the next response is lost, and the connection with it. */
  losesResponse = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("connection", (near) => {
      if (this.#isCut) {
        near.destroy();
        return;
      }
      const far = connect(port, "127.0.0.1");
      for (const one of [near, far]) {
        this.#sockets.add(one);
        one.on("error", () => {});
        one.on("close", () => {
          this.#sockets.delete(one);
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far);
      far.on("data", (bytes: Buffer) => {
        if (!this.losesResponse || !hasResponse(bytes)) near.write(bytes);
        else {
          this.losesResponse = false;
          near.destroy();
        }
      });
    });
  }

  /** @param endpoint the member's URL */
  static async to(endpoint: string): Promise<Way> {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new Way(server, Number(new URL(endpoint).port));
  }

  /** Ends the connections, and new ones at once, until mend(). */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#isCut = false;
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}

/** Whether one of these HTTP/2 frames is HEADERS, with which a response begins. */
function hasResponse(frames: Buffer): boolean {
  for (let at = 0; at + 9 <= frames.length; at += 9 + frames.readUIntBE(at, 3))
    if (frames[at + 3] === 1) return true;
  return false;
}
