/** Requests of many clients, and what they cost the server. */
import { Pool } from "undici";
import { cpuSeconds } from "../../../../bench/usage.ts";
import { type Call, LoadConnection, requestBytes } from "./connection.ts";
import { type ApiServer, TOKEN } from "./servers.ts";

const JSON_TYPE = { "content-type": "application/json" };

export interface LoadResult {
  readonly ratePerS: number;
  /** Processor time of the server, for each thousand requests. */
  readonly cpuMsPerRequest: number;
  /** Processor time of this process, which makes the load, for each thousand requests. */
  readonly generatorMsPerRequest: number;
}

export class ApiClient {
  readonly #server: ApiServer;
  readonly #pool: Pool;
  readonly #connections: LoadConnection[] = [];

  constructor(server: ApiServer) {
    this.#server = server;
    const connect = { rejectUnauthorized: false };
    this.#pool = new Pool(server.url, { connections: 1, pipelining: 1, connect });
  }

  /** Sends one request; rejects for a status of 400 and more. */
  async call({ method, path, body }: Call): Promise<string> {
    const headers = { authorization: `Bearer ${TOKEN}`, ...(body === undefined ? {} : JSON_TYPE) };
    const response = await this.#pool.request({ method, path, body: body ?? null, headers });
    const text = await response.body.text();
    if (response.statusCode >= 400)
      throw new Error(`${method} ${path}: ${response.statusCode} ${text.slice(0, 300)}`);
    return text;
  }

  /** Sends `count` requests, at most `clients` at a time, each client on its own connection. */
  async load(count: number, clients: number, callOf: (i: number) => Call): Promise<LoadResult> {
    const { pid } = this.#server;
    const host = new URL(this.#server.url).host;
    const connections = await this.#opened(clients);
    let next = 0;
    const [startMs, startCpu, ownCpu] = [performance.now(), cpuSeconds([pid]), process.cpuUsage()];
    const client = (connection: LoadConnection) =>
      new Promise<void>((resolve, reject) => {
        const goOn = (error: Error | undefined): void => {
          if (error !== undefined) reject(error);
          else if (next === count) resolve();
          else connection.send(requestBytes(host, callOf(next++)), goOn);
        };
        goOn(undefined);
      });
    await Promise.all(connections.map(client));
    const seconds = (performance.now() - startMs) / 1000;
    const cpu = cpuSeconds([pid]) - startCpu;
    const { user, system } = process.cpuUsage(ownCpu);
    return {
      ratePerS: count / seconds,
      cpuMsPerRequest: (cpu * 1000) / count,
      generatorMsPerRequest: (user + system) / 1000 / count,
    };
  }

  async #opened(count: number): Promise<readonly LoadConnection[]> {
    const missing = Math.max(0, count - this.#connections.length);
    const { url } = this.#server;
    const opened = Array.from({ length: missing }, () => LoadConnection.open(url));
    this.#connections.push(...(await Promise.all(opened)));
    return this.#connections.slice(0, count);
  }

  close(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    return this.#pool.destroy();
  }
}
