/** Requests of a program to its own API server, as JSON. For more there are Kubernetes' clients. */
import { tlsContext } from "@quorate/host";
import type { Agent } from "undici";
import type { Pair } from "./certificates.ts";

export interface JsonRequest {
  /** Default: GET, or POST with a body. */
  readonly method?: string;
  readonly body?: unknown;
  /** Of the body: application/json. */
  readonly contentType?: string;
}

export interface JsonResponse {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: an object of any kind
  readonly body: any;
}

export class JsonClient {
  readonly #url: string;
  readonly #ca: string;
  readonly #user: Pair;
  #agent: Agent | undefined;

  constructor(url: string, ca: string, user: Pair) {
    this.#url = url;
    this.#ca = ca;
    this.#user = user;
  }

  /**
   * Sends a request.
   * @param path such as "/api/v1/namespaces"
   * @returns whatever the status is; rejects where there is no response
   */
  async request(
    path: string,
    { method, body, contentType }: JsonRequest = {},
  ): Promise<JsonResponse> {
    const { Agent, request } = await import("undici");
    const { certPem: cert, keyPem: key } = this.#user;
    this.#agent ??= new Agent({ connect: tlsContext({ trusted: this.#ca, cert, key }) });
    const response = await request(`${this.#url}${path}`, {
      method: (method ?? (body === undefined ? "GET" : "POST")) as "GET",
      body: body === undefined ? null : JSON.stringify(body),
      headers: body === undefined ? {} : { "content-type": contentType ?? "application/json" },
      dispatcher: this.#agent,
    });
    const text = await response.body.text();
    const isJson = String(response.headers["content-type"]).startsWith("application/json");
    return { status: response.statusCode, body: isJson ? JSON.parse(text) : text };
  }

  async close(): Promise<void> {
    await this.#agent?.close();
  }
}
