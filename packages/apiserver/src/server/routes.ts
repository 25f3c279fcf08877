/** Paths that are no resources (apiserver: pkg/server/routes; pkg/endpoints/discovery). */
import type { Logger } from "@quorate/host";
import type { SendDeps } from "../handlers/send-object.ts";
import { methodNotAllowed } from "../handlers/statuses.ts";
import type { Call } from "./call.ts";
import type { Discovery } from "./discovery.ts";
import { sendDocument, serveRoot } from "./documents.ts";
import { type HealthCheck, serveHealth } from "./health.ts";

const NOT_FOUND = {
  "content-type": "text/plain; charset=utf-8",
  "x-content-type-options": "nosniff",
};

/** Serves a path; more than those of the server itself come from its parts. */
export type Page = (call: Call) => Promise<void>;

export interface DocumentParts {
  readonly discovery: Discovery;
  readonly send: SendDeps;
  /** The document of /version. */
  readonly version: Readonly<Record<string, unknown>>;
  /** For "healthz", "livez" and "readyz". */
  readonly healthChecks: Readonly<Record<"healthz" | "livez" | "readyz", readonly HealthCheck[]>>;
  /** By path ("/metrics"); one that ends with "/" serves all below it. */
  readonly pages: ReadonlyMap<string, Page>;
  readonly logger: Logger;
}

export class Documents {
  readonly #parts: DocumentParts;

  constructor(parts: DocumentParts) {
    this.#parts = parts;
  }

  /** Serves the call, or responds with 404. Rejects with ApiError. */
  async serve(call: Call): Promise<void> {
    const { path } = call.info;
    const [first, ...rest] = path.slice(1).replace(/\/$/, "").split("/");
    if (first === "healthz" || first === "livez" || first === "readyz")
      return this.#health(call, first);
    if (first === "" && rest.length === 0) return this.#index(call);
    if (first === "version" && rest.length === 0)
      return sendDocument(call, this.#parts.send, this.#parts.version);
    if (first === "api" || first === "apis") return this.#discovery(call, first, rest);
    const page = this.#page(path);
    if (page !== undefined) return page(call);
    call.respond(404, NOT_FOUND, "404 page not found\n");
  }

  #page(path: string): Page | undefined {
    const { pages } = this.#parts;
    const exact = pages.get(path);
    if (exact !== undefined) return exact;
    for (const [prefix, page] of pages)
      if (prefix.endsWith("/") && path.startsWith(prefix)) return page;
    return undefined;
  }

  #health(call: Call, endpoint: "healthz" | "livez" | "readyz"): Promise<void> {
    const { healthChecks, logger } = this.#parts;
    return serveHealth(call, endpoint, healthChecks[endpoint], (reasons) =>
      logger.info("a health check failed", { endpoint, reasons: reasons.join("; ") }),
    );
  }

  async #discovery(call: Call, prefix: string, rest: readonly string[]): Promise<void> {
    const { discovery, send } = this.#parts;
    const isLegacy = prefix === "api";
    if (rest.length === 0) return serveRoot(call, send, discovery, isLegacy);
    const [group, version] = isLegacy ? ["", rest[0]] : rest;
    const document =
      version === undefined ? discovery.group(group) : discovery.version(group, version);
    const isTooDeep = rest.length > (isLegacy ? 1 : 2);
    if (document !== undefined && !isTooDeep) {
      if (call.head.method !== "GET") throw methodNotAllowed();
      return sendDocument(call, send, document);
    }
    call.respond(404, NOT_FOUND, "404 page not found\n");
  }

  #index(call: Call): Promise<void> {
    const { discovery, send, pages, healthChecks } = this.#parts;
    const checks = Object.entries(healthChecks).flatMap(([endpoint, list]) => [
      `/${endpoint}`,
      ...list.map(({ name }) => `/${endpoint}/${name}`),
    ]);
    const own = ["/apis", "/version", ...[...pages.keys()].map((path) => path.replace(/\/$/, ""))];
    const paths = [...new Set([...discovery.paths(), ...own, ...checks])].sort();
    return sendDocument(call, send, { paths });
  }
}
