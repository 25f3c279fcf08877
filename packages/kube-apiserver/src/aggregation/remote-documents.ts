/**
 * What other API servers say of themselves: their discovery (kube-aggregator: pkg/apiserver/
 * handler_discovery.go) and OpenAPI documents (pkg/controllers/openapi, openapiv3).
 */
import { type Clock, joinHostPort } from "@quorate/host";
import { fitsDepth, isObject } from "@quorate/kube-storage";
import { toUtf8 } from "@quorate/proto";
import type { ApiServiceSpec } from "../builtin/api-services.ts";
import { AGGREGATOR } from "./availability.ts";
import type { BackendPlace, Backends, WholeResponse } from "./backends.ts";
import { wholeResponse } from "./whole-response.ts";

type Document = Readonly<Record<string, unknown>>;

export interface RemoteDocuments {
  /** apidiscovery.k8s.io's APIResourceDiscovery each. */
  readonly resources: readonly Document[];
  /** Its OpenAPI v2 document; undefined where it has none. */
  readonly v2: Document | undefined;
  /** Where its OpenAPI v3 document of the group and version is; undefined where it has none. */
  readonly v3Url: string | undefined;
}

export const MAX_DISCOVERY_BYTES: number = 2 * 1024 * 1024;
export const MAX_OPENAPI_BYTES: number = 4 * 1024 * 1024;
const MAX_DEPTH = 100;
const TIMEOUT_MS = 5000;
const OPENAPI_TIMEOUT_MS = 60_000;
const ACCEPT_DISCOVERY = ["v2", "v2beta1"]
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .join(",");

/** Rejects with Error where there is no discovery document; OpenAPI documents may be missing. */
export async function readDocuments(
  spec: ApiServiceSpec,
  place: BackendPlace,
  backends: Backends,
  clock: Clock,
): Promise<RemoteDocuments> {
  const get = (path: string, accept: string, maxBytes: number, timeoutMs = TIMEOUT_MS) =>
    wholeResponse(
      backends,
      {
        place,
        path,
        method: "GET",
        headers: { ...AGGREGATOR, accept, host: joinHostPort(place.host, place.port) },
        body: new Uint8Array(),
      },
      { timeoutMs, maxBytes },
      clock,
    );
  const json = "application/json";
  const openApi = (path: string): Promise<Document | undefined> =>
    get(path, json, MAX_OPENAPI_BYTES, OPENAPI_TIMEOUT_MS).then(documentOf, () => undefined);
  const [resources, v2, v3] = await Promise.all([
    readResources(spec, (path, accept) => get(path, accept, MAX_DISCOVERY_BYTES)),
    openApi("/openapi/v2"),
    openApi("/openapi/v3"),
  ]);
  const paths = (v3?.["paths"] ?? {}) as Readonly<Record<string, { serverRelativeURL?: unknown }>>;
  const key = `apis/${spec.group}/${spec.version}`;
  const url = Object.hasOwn(paths, key) ? paths[key]?.serverRelativeURL : undefined;
  const isOwn = typeof url === "string" && url.startsWith(`/openapi/v3/${key}`);
  return { resources, v2, v3Url: isOwn ? url : undefined };
}

/** The JSON object of a response with status 200; undefined for all else. */
function documentOf({ status, body }: WholeResponse): Document | undefined {
  if (status !== 200) return undefined;
  try {
    const value: unknown = JSON.parse(toUtf8(body));
    return isObject(value) && fitsDepth(value, MAX_DEPTH) ? value : undefined;
  } catch {
    // What is not JSON is no document.
    return undefined;
  }
}

function documents(value: unknown): readonly Document[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

async function readResources(
  { group, version }: ApiServiceSpec,
  get: (path: string, accept: string) => Promise<WholeResponse>,
): Promise<readonly Document[]> {
  const aggregated = await get("/apis", ACCEPT_DISCOVERY);
  const list = documentOf(aggregated);
  if (list?.["kind"] === "APIGroupDiscoveryList") {
    const own = documents(list["items"]).find(
      ({ metadata }) => isObject(metadata) && metadata["name"] === group,
    );
    const found = documents(own?.["versions"]).find((one) => one["version"] === version);
    return documents(found?.["resources"]);
  }
  const path = `/apis/${group}/${version}`;
  const plain = await get(path, "application/json");
  const resources = documentOf(plain)?.["resources"];
  if (Array.isArray(resources)) return fromPlain(documents(resources));
  throw new Error(`failed to download legacy discovery for ${path}: status ${plain.status}`);
}

/** From APIResource to APIResourceDiscovery: subresources go into their resource. */
function fromPlain(resources: readonly Document[]): Document[] {
  const kindOf = ({ group = "", version = "", kind = "" }: Document): Document => ({
    group,
    version,
    kind,
  });
  const nameOf = ({ name }: Document): string => (typeof name === "string" ? name : "");
  // Together, since there may be tens of thousands.
  const byResource = Map.groupBy(
    resources.filter((one) => nameOf(one).includes("/")),
    (one) => nameOf(one).slice(0, nameOf(one).indexOf("/")),
  );
  return resources
    .filter((one) => nameOf(one) !== "" && !nameOf(one).includes("/"))
    .map((one) => {
      const subresources = (byResource.get(nameOf(one)) ?? []).map((it) => ({
        subresource: nameOf(it).slice(nameOf(one).length + 1),
        responseKind: kindOf(it),
        verbs: it["verbs"] ?? [],
      }));
      const { shortNames, categories } = one;
      return {
        resource: nameOf(one),
        responseKind: kindOf(one),
        scope: one["namespaced"] === true ? "Namespaced" : "Cluster",
        singularResource: one["singularName"] ?? "",
        verbs: one["verbs"] ?? [],
        ...(shortNames === undefined ? {} : { shortNames }),
        ...(categories === undefined ? {} : { categories }),
        ...(subresources.length === 0 ? {} : { subresources }),
      };
    });
}

/** Whether two are the same, so that nothing made from them is made again. */
export function sameDocuments(a: RemoteDocuments, b: RemoteDocuments): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
