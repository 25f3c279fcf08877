/**
 * A TCP proxy that can stop to move bytes, as a host does that hangs: connections are taken, and
 * that is all.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import type { TestContext } from "node:test";

export class StallingProxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #stalled = false;

  private constructor(target: string) {
    const { hostname, port } = new URL(target);
    this.#server = createServer((near) => {
      const far = connect(Number(port), hostname);
      const pair = [near, far] as const;
      this.#pairs.add(pair);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ]) {
        from.on("error", () => {});
        from.on("data", (chunk) => {
          if (!to.write(chunk)) from.pause();
        });
        to.on("drain", () => {
          if (!this.#stalled) from.resume();
        });
        from.on("close", () => {
          to.destroy();
          this.#pairs.delete(pair);
        });
      }
      if (this.#stalled) for (const socket of pair) socket.pause();
    });
  }

  /** A proxy before `target` ("http://host:port") that ends with the test, and its own URL. */
  static async before(
    t: TestContext,
    target: string,
  ): Promise<{ readonly proxy: StallingProxy; readonly url: string }> {
    const proxy = new StallingProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    t.after(() => proxy.close());
    const address = proxy.#server.address() as { port: number };
    return { proxy, url: `${new URL(target).protocol}//127.0.0.1:${address.port}` };
  }

  /** Connections that are open. */
  get connections(): number {
    return this.#pairs.size;
  }

  stall(): void {
    this.#stalled = true;
    for (const pair of this.#pairs) for (const socket of pair) socket.pause();
  }

  go(): void {
    this.#stalled = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.resume();
  }

  close(): void {
    this.#server.close();
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }
}
