/**
 * Calls webhooks over HTTPS with undici. Connections are kept for each place and CA, and all is
 * bounded: places, connections to a place, calls under way, bytes of a response.
 *
 * There is no service network here, so a service reference needs an entry in `services`:
 *
 *     "webhook.operators" -> "127.0.0.1:9443"      name.namespace -> where to connect to
 *
 * The certificate must be valid for "webhook.operators.svc", as in Kubernetes.
 */

import { posix } from "node:path";
import { splitHostPort, tlsContext } from "@quorate/host";
import { defined } from "@quorate/proto";
import type { Agent, Dispatcher } from "undici";
import {
  MAX_WEBHOOK_RESPONSE_BYTES,
  type WebhookCall,
  WebhookCallError,
  type WebhookCaller,
  type WebhookClientConfig,
  type WebhookResponse,
} from "../src/admission/webhook-caller.ts";
import { goReason } from "./go-errors.ts";

/** Places with connections; the one that was used longest ago is closed first. */
export const MAX_WEBHOOK_PLACES = 200;
export const MAX_CONNECTIONS_TO_A_WEBHOOK = 32;
/** Calls under way in the server. One more fails. */
export const MAX_RUNNING_WEBHOOK_CALLS = 2048;
/**
 * Chunks of one response. Each costs memory and time beside its bytes: 8 MiB in chunks of one byte
 * would take a gigabyte.
 */
export const MAX_WEBHOOK_RESPONSE_PIECES = 16_384;
const KEEP_ALIVE_MS = 60_000;

export interface WebhookCallerOptions {
  /** Default: the constants above. */
  readonly maxPlaces?: number;
  readonly maxRunning?: number;
  /** Where services are, by "name.namespace" or "name.namespace:port". */
  readonly services: ReadonlyMap<string, string>;
}

/** Where a call goes, and how the other side proves itself. */
interface Place {
  readonly url: URL;
  /** host:port to connect to instead of the URL's. */
  readonly address: string | undefined;
  readonly caPem: string | undefined;
}

export class HttpsWebhookCaller implements WebhookCaller {
  readonly #options: WebhookCallerOptions;
  /** In the order of their last use. */
  readonly #agents = new Map<string, Agent>();
  #running = 0;

  constructor(options: WebhookCallerOptions) {
    this.#options = options;
  }

  get places(): number {
    return this.#agents.size;
  }

  async call(call: WebhookCall): Promise<WebhookResponse> {
    const place = placeOf(call.config, this.#options.services);
    if (this.#running >= (this.#options.maxRunning ?? MAX_RUNNING_WEBHOOK_CALLS)) {
      throw new WebhookCallError("Busy", "too many webhooks are being called");
    }
    this.#running++;
    try {
      return await this.#send(place, call);
    } finally {
      this.#running--;
    }
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    const agents = [...this.#agents.values()];
    this.#agents.clear();
    await Promise.all(agents.map((agent) => agent.destroy()));
  }

  async #send(place: Place, { body, timeoutMs, signal }: WebhookCall): Promise<WebhookResponse> {
    const { request } = await import("undici");
    const { url } = place;
    url.searchParams.set("timeout", `${Math.ceil(timeoutMs / 1000)}s`);
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(DEADLINE), timeoutMs);
    const abort = (): void => controller.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    try {
      const response = await request(url, {
        method: "POST",
        body,
        headers: { "content-type": "application/json", accept: "application/json, */*" },
        dispatcher: await this.#agentOf(place),
        signal: controller.signal,
      });
      return { status: response.statusCode, body: await wholeBody(response) };
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw callError(url, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  async #agentOf({ url, address, caPem }: Place): Promise<Agent> {
    const key = JSON.stringify([url.host, address, caPem]);
    const known = this.#agents.get(key);
    if (known !== undefined) {
      this.#agents.delete(key);
      this.#agents.set(key, known);
      return known;
    }
    const { Agent, buildConnector } = await import("undici");
    const connector = buildConnector({ ...tlsContext({ trusted: caPem }), timeout: 30_000 });
    const connect: typeof connector = (options, callback) => {
      if (address === undefined) return connector(options, callback);
      const { host, port } = defined(splitHostPort(address), "the address of a service");
      const target = { hostname: host, port: String(port), servername: options.hostname };
      connector({ ...options, ...target }, callback);
    };
    const agent = new Agent({
      connect,
      connections: MAX_CONNECTIONS_TO_A_WEBHOOK,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
    });
    this.#agents.set(key, agent);
    const maxPlaces = this.#options.maxPlaces ?? MAX_WEBHOOK_PLACES;
    if (this.#agents.size > maxPlaces) this.#closeOldest();
    return agent;
  }

  #closeOldest(): void {
    const [key, agent] = defined(this.#agents.entries().next().value, "an element of agents");
    this.#agents.delete(key);
    // Calls that are under way on it end first.
    void agent.close();
  }
}

/** The reason of a call that took too long. */
const DEADLINE = new WebhookCallError("Timeout", "context deadline exceeded");

function placeOf(config: WebhookClientConfig, services: ReadonlyMap<string, string>): Place {
  const caPem = caOf(config.caBundle);
  if (config.service === undefined || config.service === null) {
    if (!config.url) {
      const why = "webhook configuration must have either service or URL";
      throw new WebhookCallError("Config", `could not get REST client: ${why}`);
    }
    const url = URL.parse(config.url);
    if (url === null || url.protocol !== "https:") {
      throw new WebhookCallError(
        "Config",
        `could not get REST client: Unparsable URL: ${config.url}`,
      );
    }
    url.pathname = cleanPath(url.pathname);
    return { url, address: undefined, caPem };
  }
  const { name, namespace, path = "/", port = 443 } = config.service;
  const service = `${name}.${namespace}`;
  const url = new URL(`https://${service}.svc:${port}${cleanPath(path)}`);
  const address = services.get(`${service}:${port}`) ?? services.get(service);
  if (address === undefined) {
    throw new WebhookCallError(
      "Config",
      `Post "${url}": service "${name}" not found in namespace "${namespace}": services are not ` +
        "served; name an address with --webhook-service",
    );
  }
  return { url, address, caPem };
}

/** As Go's path.Join: one slash between segments, none at the end. */
function cleanPath(path: string): string {
  const clean = posix.join("/", path);
  return clean.length > 1 && clean.endsWith("/") ? clean.slice(0, -1) : clean;
}

function caOf(caBundle: string | undefined): string | undefined {
  if (!caBundle) return undefined;
  const pem = Buffer.from(caBundle, "base64").toString();
  if (pem.includes("-----BEGIN CERTIFICATE-----")) return pem;
  const why = "unable to load root certificates: unable to parse bytes as PEM block";
  throw new WebhookCallError("Config", `could not get REST client: ${why}`);
}

async function wholeBody({ body, headers }: Dispatcher.ResponseData): Promise<Uint8Array> {
  const refuse = (bound: string): never => {
    body.destroy();
    throw new WebhookCallError("TooLarge", `the response has more than ${bound}`);
  };
  const tooLarge = `${MAX_WEBHOOK_RESPONSE_BYTES} bytes`;
  if (Number(headers["content-length"] ?? 0) > MAX_WEBHOOK_RESPONSE_BYTES) refuse(tooLarge);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += (chunk as Buffer).length;
    if (size > MAX_WEBHOOK_RESPONSE_BYTES) refuse(tooLarge);
    if (chunks.push(chunk as Buffer) > MAX_WEBHOOK_RESPONSE_PIECES)
      refuse(`${MAX_WEBHOOK_RESPONSE_PIECES} pieces`);
  }
  return Buffer.concat(chunks);
}

function callError(url: URL, error: unknown): WebhookCallError {
  const post = `Post ${JSON.stringify(String(url))}`;
  if (error === DEADLINE) return new WebhookCallError("Timeout", `${post}: ${DEADLINE.message}`);
  if (error instanceof WebhookCallError) return error;
  return new WebhookCallError("Unreachable", `${post}: ${goReason(error)}`);
}
