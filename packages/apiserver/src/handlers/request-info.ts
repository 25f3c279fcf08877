/**
 * What a request's path and method mean (apiserver: pkg/endpoints/request/requestinfo.go).
 *
 *     /api/v1/namespaces/NAMESPACE/configmaps/NAME      group "", resource "configmaps"
 *     /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE
 *     /apis/GROUP/VERSION/watch/RESOURCE                the deprecated form of ?watch=1
 *     /healthz                                          no resource: the verb is the method
 */
import { type Query, unescapeUrl } from "./query.ts";

export interface RequestInfo {
  readonly isResourceRequest: boolean;
  /** The path with its escapes decoded. */
  readonly path: string;
  readonly verb: string;
  /** "api" or "apis"; "" where it is no resource request. */
  readonly prefix: string;
  readonly group: string;
  readonly version: string;
  /** "" for requests without one. */
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  /** The path from the resource on. */
  readonly parts: readonly string[];
  /** The verb stands in the path: "watch" or "proxy". */
  readonly isVerbInPath: boolean;
}

/** Parts of the path that belong to the namespace itself. */
const NAMESPACE_SUBRESOURCES = new Set(["status", "finalize"]);
const VERBS_IN_PATH = new Set(["proxy", "watch"]);

const VERBS: Readonly<Record<string, string>> = {
  POST: "create",
  GET: "get",
  HEAD: "get",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

const NO_RESOURCE = {
  isResourceRequest: false,
  prefix: "",
  group: "",
  version: "",
  namespace: "",
  resource: "",
  subresource: "",
  name: "",
  parts: [],
  isVerbInPath: false,
} as const;

/**
 * @param path as sent, with escapes
 * @returns undefined for a path that cannot be decoded, or that names a verb and nothing else
 */
export function requestInfoOf(method: string, path: string, query: Query): RequestInfo | undefined {
  const decoded = unescapeUrl(path, false);
  if (decoded === undefined) return undefined;
  const plain = { ...NO_RESOURCE, path: decoded, verb: method.toLowerCase() };
  let parts = partsOf(decoded);
  const prefix = parts[0];
  if (parts.length < 3 || (prefix !== "api" && prefix !== "apis")) return plain;
  let group = "";
  parts = parts.slice(1);
  if (prefix === "apis") {
    if (parts.length < 3) return plain;
    group = parts[0];
    parts = parts.slice(1);
  }
  const version = parts[0];
  parts = parts.slice(1);
  let verb = VERBS[method] ?? "";
  const isVerbInPath = VERBS_IN_PATH.has(parts[0]);
  if (isVerbInPath) {
    if (parts.length < 2) return undefined;
    verb = parts[0];
    parts = parts.slice(1);
  }
  let namespace = "";
  if (parts[0] === "namespaces" && parts.length > 1) {
    namespace = parts[1];
    if (parts.length > 2 && !NAMESPACE_SUBRESOURCES.has(parts[2])) parts = parts.slice(2);
  }
  const subresource = parts.length > 2 && verb !== "proxy" ? parts[2] : "";
  const [resource, pathName = ""] = parts;
  const { verb: finalVerb, name } = collectionVerb(verb, pathName, query);
  return {
    ...{ isResourceRequest: true, path: decoded, verb: finalVerb, prefix, group, version },
    ...{ namespace, resource, subresource, name, parts, isVerbInPath },
  };
}

/** A verb without a name is about the collection. */
function collectionVerb(verb: string, name: string, query: Query): { verb: string; name: string } {
  if (name !== "") return { verb, name };
  if (verb === "delete") return { verb: "deletecollection", name };
  if (verb !== "get") return { verb, name };
  const listVerb = query.flag("watch") === true ? "watch" : "list";
  return { verb: listVerb, name: selectedName(query.first("fieldSelector")) };
}

/** The name that a field selector demands, so that permissions on names cover it. */
function selectedName(fieldSelector: string): string {
  for (const term of fieldSelector.split(",")) {
    const [, name = ""] = /^\s*metadata\.name==?([^!=]+)$/.exec(term) ?? [];
    if (name !== "" && name !== "." && name !== ".." && !/[/%]/.test(name)) return name.trim();
  }
  return "";
}

function partsOf(path: string): string[] {
  const trimmed = path.replace(/^\/+|\/+$/g, "");
  return trimmed === "" ? [] : trimmed.split("/");
}

/** Requests that last as long as the client wants: without a timeout and without a seat. */
export function isLongRunning(info: RequestInfo): boolean {
  return info.isResourceRequest && (info.verb === "watch" || info.verb === "proxy");
}
