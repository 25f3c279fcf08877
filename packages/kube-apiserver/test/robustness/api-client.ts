/** HTTPS to one API server: objects, and watches as lines. */
import { Agent, request } from "undici";

export interface Answer {
  readonly code: number;
  // biome-ignore lint/suspicious/noExplicitAny: objects of the API, as a client has them
  readonly body: any;
}

/** An event of a watch, as in Kubernetes' stream. */
export interface StreamEvent {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: an object of the API
  readonly object: any;
}

const CALL_LIMIT_MS = 15_000;

export class ApiClient {
  readonly port: number;
  readonly #token: string;
  readonly #agent = new Agent({ connect: { rejectUnauthorized: false } });

  constructor(port: number, token: string) {
    this.port = port;
    this.#token = token;
  }

  async isReady(): Promise<boolean> {
    try {
      return (await this.call("GET", "/readyz")).code === 200;
    } catch {
      // It does not listen yet.
      return false;
    }
  }

  /** Rejects where the connection fails; then a write may have happened. */
  async call(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<Answer> {
    const { statusCode, body: answer } = await request(`https://127.0.0.1:${this.port}${path}`, {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
      headersTimeout: CALL_LIMIT_MS,
      bodyTimeout: CALL_LIMIT_MS,
    });
    const text = await answer.text();
    return { code: statusCode, body: text.startsWith("{") ? JSON.parse(text) : text };
  }

  /** The events of a watch until it ends. Rejects where the connection fails. */
  async *watch(path: string, signal: AbortSignal): AsyncGenerator<StreamEvent> {
    const { statusCode, body } = await request(`https://127.0.0.1:${this.port}${path}`, {
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#token}` },
      signal,
      headersTimeout: CALL_LIMIT_MS,
      bodyTimeout: 0,
    });
    if (statusCode !== 200) {
      yield { type: "ERROR", object: JSON.parse(await body.text()) };
      return;
    }
    let rest = "";
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line) as StreamEvent;
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}
