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
import type { Agent } from "undici";
import {
  MAX_WEBHOOK_RESPONSE_BYTES,
  type WebhookCall,
  WebhookCallError,
  type WebhookCaller,
  type WebhookClientConfig,
  type WebhookResponse,
  type WebhookServer,
} from "../src/admission/webhook-caller.ts";
import { boundedBody } from "./bounded-body.ts";
import { goReason } from "./go-errors.ts";
import { KeptAgents } from "./kept-agents.ts";

export const MAX_CONNECTIONS_TO_A_WEBHOOK = 32;
/** Calls under way in the server. One more fails. */
export const MAX_RUNNING_WEBHOOK_CALLS = 2048;
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
  /** What a kubeconfig says besides. */
  readonly server?: WebhookServer;
}

export class HttpsWebhookCaller implements WebhookCaller {
  readonly #options: WebhookCallerOptions;
  readonly #agents: KeptAgents<Agent>;
  #running = 0;

  constructor(options: WebhookCallerOptions) {
    this.#options = options;
    // Calls that are under way on an agent end first.
    this.#agents = new KeptAgents((agent) => void agent.close(), options.maxPlaces);
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
    await Promise.all(this.#agents.takeAll().map((agent) => agent.destroy()));
  }

  async #send(place: Place, call: WebhookCall): Promise<WebhookResponse> {
    const undici = await import("undici");
    const { body, timeoutMs, signal, maxBytes = MAX_WEBHOOK_RESPONSE_BYTES } = call;
    const { url } = place;
    const authorization = place.server?.authorization();
    url.searchParams.set("timeout", `${Math.ceil(timeoutMs / 1000)}s`);
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(DEADLINE), timeoutMs);
    const abort = (): void => controller.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    try {
      const response = await undici.request(url, {
        method: "POST",
        body,
        headers: {
          "content-type": "application/json",
          accept: "application/json, */*",
          ...(authorization === undefined ? {} : { authorization }),
        },
        dispatcher: this.#agentOf(place, undici),
        signal: controller.signal,
      });
      const { statusCode: status, headers } = response;
      return { status, headers, body: await boundedBody(response, maxBytes, tooLarge) };
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      throw callError(url, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }

  #agentOf({ url, address, caPem, server }: Place, undici: typeof import("undici")): Agent {
    const { cert, key, serverName, isInsecure = false } = server ?? {};
    const place = [url.host, address, caPem, cert, key, serverName, isInsecure];
    return this.#agents.of(place, () => {
      const connector = undici.buildConnector({
        ...tlsContext({ trusted: caPem, cert, key }),
        rejectUnauthorized: !isInsecure,
        timeout: 30_000,
      });
      const connect: typeof connector = (options, callback) => {
        const named = serverName === undefined ? options : { ...options, servername: serverName };
        if (address === undefined) return connector(named, callback);
        const { host, port } = defined(splitHostPort(address), "the address of a service");
        const target = { hostname: host, port: String(port), servername: options.hostname };
        connector({ ...options, ...target }, callback);
      };
      return new undici.Agent({
        connect,
        connections: MAX_CONNECTIONS_TO_A_WEBHOOK,
        pipelining: 1,
        keepAliveTimeout: KEEP_ALIVE_MS,
      });
    });
  }
}

/** The reason of a call that took too long. */
const DEADLINE = new WebhookCallError("Timeout", "context deadline exceeded");

function placeOf(
  config: WebhookClientConfig | WebhookServer,
  services: ReadonlyMap<string, string>,
): Place {
  if ("authorization" in config) {
    const url = URL.parse(config.url);
    if (url === null)
      throw new WebhookCallError("Config", `parse ${JSON.stringify(config.url)}: invalid URI`);
    return { url, address: undefined, caPem: config.trusted, server: config };
  }
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

function tooLarge(bound: string): WebhookCallError {
  return new WebhookCallError("TooLarge", `the response has more than ${bound}`);
}

function callError(url: URL, error: unknown): WebhookCallError {
  const post = `Post ${JSON.stringify(String(url))}`;
  if (error === DEADLINE) return new WebhookCallError("Timeout", `${post}: ${DEADLINE.message}`);
  if (error instanceof WebhookCallError) return error;
  return new WebhookCallError("Unreachable", `${post}: ${goReason(error)}`);
}
