/** A server of the v2 API under comparison, reached over HTTP. */
import { Agent, request } from "undici";

/** One request. */
export interface V2Request {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Escaped, from "/v2" on. */
  readonly path: string;
  readonly query: string;
  readonly body: string | undefined;
  readonly contentType?: string;
}

/** What came of it. */
export interface V2Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

const TIMEOUT_MS = 20_000;
/** A wait for what is in the history ends at once. */
const WAIT_TIMEOUT_MS = 400;

export class HttpTarget {
  readonly name: string;
  readonly #url: string;
  readonly #agent = new Agent({ connections: 16 });

  constructor(name: string, url: string) {
    this.name = name;
    this.#url = url;
  }

  /** The response; status 0 if it is not complete in time, as of a wait for what does not come. */
  async send(one: V2Request): Promise<V2Response> {
    try {
      return await this.#send(one);
    } catch (error) {
      if ((error as Error).name !== "TimeoutError") throw error;
      return { status: 0, headers: {}, body: "" };
    }
  }

  async #send(one: V2Request): Promise<V2Response> {
    const query = one.query === "" ? "" : `?${one.query}`;
    const type = one.contentType ?? "application/x-www-form-urlencoded";
    const response = await request(`${this.#url}${one.path}${query}`, {
      method: one.method,
      dispatcher: this.#agent,
      ...(one.body !== undefined && { body: one.body, headers: { "content-type": type } }),
      signal: AbortSignal.timeout(one.query.includes("waitIndex=") ? WAIT_TIMEOUT_MS : TIMEOUT_MS),
    });
    const body = await response.body.text();
    const headers: Record<string, string> = {};
    for (const name of [
      "content-type",
      "x-etcd-index",
      "x-raft-index",
      "x-raft-term",
      "x-etcd-cluster-id",
      "allow",
      "location",
    ]) {
      const value = response.headers[name];
      if (value !== undefined) headers[name] = String(value);
    }
    return { status: response.statusCode, headers, body };
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}
