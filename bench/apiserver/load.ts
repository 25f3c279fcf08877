/** Requests of many clients, and what they cost the server. */
import { Pool } from "undici";
import { cpuSeconds } from "../usage.ts";
import { type ApiServer, TOKEN } from "./servers.ts";

const JSON_TYPE = { "content-type": "application/json" };

export interface LoadResult {
  readonly ratePerS: number;
  /** Processor time of the server, for each thousand requests. */
  readonly cpuMsPerRequest: number;
}

/** A request of a load, by its number. */
export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: string;
}

export class ApiClient {
  readonly #server: ApiServer;
  readonly #pool: Pool;

  /** @param clients connections, each with one request at a time */
  constructor(server: ApiServer, clients: number) {
    this.#server = server;
    const connect = { rejectUnauthorized: false };
    this.#pool = new Pool(server.url, { connections: clients, pipelining: 1, connect });
  }

  /** Sends one request; rejects for a status of 400 and more. */
  async call({ method, path, body }: Call): Promise<string> {
    const headers = { authorization: `Bearer ${TOKEN}`, ...(body === undefined ? {} : JSON_TYPE) };
    const response = await this.#pool.request({ method, path, body, headers });
    const text = await response.body.text();
    if (response.statusCode >= 400)
      throw new Error(`${method} ${path}: ${response.statusCode} ${text.slice(0, 300)}`);
    return text;
  }

  /** Sends `count` requests, at most `clients` at a time. */
  async load(count: number, clients: number, callOf: (i: number) => Call): Promise<LoadResult> {
    let next = 0;
    const { pid } = this.#server;
    const [startMs, startCpu] = [performance.now(), cpuSeconds([pid])];
    const client = async (): Promise<void> => {
      while (next < count) await this.call(callOf(next++));
    };
    await Promise.all(Array.from({ length: clients }, client));
    const seconds = (performance.now() - startMs) / 1000;
    const cpu = cpuSeconds([pid]) - startCpu;
    return { ratePerS: count / seconds, cpuMsPerRequest: (cpu * 1000) / count };
  }

  close(): Promise<void> {
    return this.#pool.destroy();
  }
}
