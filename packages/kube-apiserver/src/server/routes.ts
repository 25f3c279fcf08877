/** Paths that are no resources (apiserver: pkg/server/routes; pkg/endpoints/discovery). */
import type { Logger } from "@quorate/host";
import type { ServedResources } from "@quorate/kube-storage";
import { crc32c, fromUtf8 } from "@quorate/proto";
import { BodySink } from "../handlers/body-sink.ts";
import type { Call } from "../handlers/call.ts";
import { mediaTypeOf, negotiate, type Offer } from "../handlers/negotiation.ts";
import { encodePlain, negotiated, type SendDeps } from "../handlers/send-object.ts";
import { methodNotAllowed, resourceNotServed } from "../handlers/statuses.ts";
import { withoutSlashesBehind } from "../handlers/target.ts";
import type { Discovery } from "./discovery.ts";
import { type HealthCheck, serveHealth } from "./health.ts";

const NOT_FOUND = {
  "content-type": "text/plain; charset=utf-8",
  "x-content-type-options": "nosniff",
};

/** Serves a path; more than those of the server itself come from its parts. */
export type Page = (call: Call) => Promise<void>;

export interface DocumentParts {
  readonly resources: ServedResources;
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
    const { path } = call.target;
    const [, first] = path.split("/", 2);
    if (path === "/") return this.#index(call);
    if (first === "healthz" || first === "livez" || first === "readyz")
      return path === `/${first}/` ? noPage(call) : this.#health(call, first);
    if (first === "version") return this.#version(call);
    if (first === "api") return this.#core(call);
    if (first === "apis") return this.#groups(call);
    const page = this.#page(path);
    return page === undefined ? noPage(call) : page(call);
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

  async #version(call: Call): Promise<void> {
    if (withoutSlashesBehind(call.target.path) !== "/version") throw resourceNotServed();
    return this.#document(call, this.#parts.version);
  }

  /** /api and /api/VERSION, with any number of slashes behind. */
  async #core(call: Call): Promise<void> {
    const { discovery, send } = this.#parts;
    const [, version, ...more] = withoutSlashesBehind(call.target.path).slice(1).split("/");
    if (version !== undefined) {
      const document = more.length === 0 ? discovery.version("", version) : undefined;
      if (document === undefined) throw resourceNotServed();
      return this.#document(call, document);
    }
    if (call.target.method !== "GET") throw methodNotAllowed();
    return serveRoot(call, send, discovery, true);
  }

  /** /apis, /apis/GROUP and /apis/GROUP/VERSION; custom versions and groups take every method. */
  async #groups(call: Call): Promise<void> {
    const { discovery, send, resources } = this.#parts;
    const { path } = call.target;
    if (path === "/apis" || path === "/apis/") return serveRoot(call, send, discovery, false);
    const trimmed = withoutSlashesBehind(path);
    const [, group, version] = trimmed.slice(1).split("/");
    if (group === undefined || group === "") return noPage(call);
    const document =
      version === undefined ? discovery.group(group) : discovery.version(group, version);
    const isBuiltIn = resources.hasBuiltIns(group);
    if (document === undefined) {
      if (isBuiltIn) throw resourceNotServed();
      return noPage(call);
    }
    const isGroup = version === undefined && path.length - trimmed.length <= 1;
    if (isBuiltIn && !isGroup) return this.#document(call, document);
    return sendDocument(call, send, document);
  }

  /** A document that is served to GET alone. */
  #document(call: Call, document: Readonly<Record<string, unknown>>): Promise<void> {
    if (call.target.method !== "GET") throw methodNotAllowed();
    return sendDocument(call, this.#parts.send, document);
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

async function noPage(call: Call): Promise<void> {
  call.respond(404, NOT_FOUND, "404 page not found\n");
}

type Document = Readonly<Record<string, unknown>>;

const PLAIN: Offer = { encodings: ["json", "yaml"], allows: () => false };
const DISCOVERY_GROUP = "apidiscovery.k8s.io";
const DISCOVERY_KIND = "APIGroupDiscoveryList";
const AGGREGATED: Offer = {
  encodings: ["json"],
  allows: ({ group, version, kind }) =>
    group === DISCOVERY_GROUP &&
    kind === DISCOVERY_KIND &&
    (version === "v2" || version === "v2beta1"),
};

/** Sends a document in the form that the client accepts. Rejects with ApiError 406. */
async function sendDocument(call: Call, deps: SendDeps, document: Document): Promise<void> {
  const { encoding, pretty } = negotiated(call, PLAIN);
  const sink = new BodySink(call, 200, mediaTypeOf(encoding), deps.newCompressor);
  sink.add(await encodePlain(document, encoding, pretty));
  await sink.end();
}

/** Serves /api and /apis: one document with everything for clients that ask for it. */
async function serveRoot(
  call: Call,
  deps: SendDeps,
  discovery: Discovery,
  isLegacy: boolean,
): Promise<void> {
  const version = wantedAggregate(call.header("accept"));
  if (version === undefined) {
    const document = isLegacy
      ? discovery.legacyVersions(call.header("host"))
      : discovery.groupList();
    call.setHeader("vary", "Accept");
    return sendDocument(call, deps, document);
  }
  const bytes = fromUtf8(`${JSON.stringify(discovery.aggregated(isLegacy, version))}\n`);
  const etag = `"${crc32c(0, bytes).toString(16).toUpperCase()}-${bytes.length}"`;
  call.setHeader("etag", etag);
  call.setHeader("vary", "Accept");
  call.setHeader("cache-control", "public");
  if (call.header("if-none-match") === etag) {
    call.respond(304, {}, "");
    return;
  }
  const type = `application/json;g=${DISCOVERY_GROUP};v=${version};as=${DISCOVERY_KIND}`;
  const sink = new BodySink(call, 200, type, deps.newCompressor);
  sink.add(bytes);
  await sink.end();
}

/** The version of the aggregated document that the client prefers to the plain one. */
function wantedAggregate(accept: string): string | undefined {
  try {
    return negotiate(accept, AGGREGATED).target?.version;
  } catch {
    return undefined;
  }
}
