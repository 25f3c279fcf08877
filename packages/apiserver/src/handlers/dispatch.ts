/**
 * From a resource request to its handler (apiserver: endpoints/installer.go,
 * apiextensions: customresource_handler.go).
 */
import type { ApiError } from "../meta/status.ts";
import { methodNotSupported } from "../meta/status-errors.ts";
import type { RequestContext } from "../rest/context.ts";
import type { RestStorage } from "../rest/interfaces.ts";
import type { ServedResource, ServedResources } from "../rest/served-resource.ts";
import type { Call } from "../server/call.ts";
import { create } from "./create.ts";
import { deleteCollection, deleteOne } from "./delete.ts";
import { patch } from "./patch.ts";
import { get, listOrWatch } from "./read.ts";
import type { RequestInfo } from "./request-info.ts";
import type { HandlerDeps, ResourceCall } from "./resource-call.ts";
import { negotiated } from "./send-object.ts";
import { methodNotAllowed, requestTimeout, resourceNotServed } from "./statuses.ts";
import { offerOf } from "./transform.ts";
import { update } from "./update.ts";

const NOT_FOUND = {
  "content-type": "text/plain; charset=utf-8",
  "x-content-type-options": "nosniff",
};

type Handler = (given: ResourceCall, deps: HandlerDeps) => Promise<void>;

/** By verb; the ones of a named object need a name. */
const HANDLERS: Readonly<Record<string, Handler>> = {
  get,
  list: listOrWatch,
  watch: listOrWatch,
  create,
  update,
  patch,
  delete: deleteOne,
  deletecollection: deleteCollection,
};

const NAMED_VERBS = new Set(["get", "update", "patch", "delete"]);
/** Writes have their own, shorter, timeout. */
const WRITE_VERBS = new Set(["create", "update", "patch", "delete"]);

/** Serves a resource request. Rejects with ApiError. */
export async function serveResource(
  call: Call,
  resources: ServedResources,
  deps: HandlerDeps,
): Promise<void> {
  const { info } = call;
  const { group, version, subresource, parts } = info;
  const resource = resources.find(group, version, info.resource, subresource);
  if (resource === undefined && !isKnownPath(info, resources)) {
    call.respond(404, NOT_FOUND, "404 page not found\n");
    return;
  }
  if (resource === undefined || parts.length > 3) throw resourceNotServed();
  const handler = HANDLERS[info.verb];
  checkRoute(call, resource);
  if (handler === undefined) throw withoutRoute(resource, info.verb || call.head.method);
  if (resource.deprecationWarning !== undefined) call.warn(resource.deprecationWarning);
  const ctx: RequestContext = {
    user: call.user,
    namespace: resource.namespaced ? info.namespace : "",
    signal: call.canceller,
    warn: (text) => call.warn(text),
  };
  const form = negotiated(call, offerOf(resource));
  const isNamed = NAMED_VERBS.has(info.verb) || info.verb === "watch" || info.verb === "list";
  const name = isNamed || subresource !== "" ? info.name : "";
  const given: ResourceCall = {
    ...{ call, resource, name, ctx, form },
    namespace: info.namespace,
  };
  if (!WRITE_VERBS.has(info.verb)) return handler(given, deps);
  const forget = deps.writeTimeouts.add(() => call.canceller.abort(requestTimeout()));
  try {
    await handler(given, deps);
  } finally {
    forget();
  }
}

/**
 * Whether Kubernetes has a route for such a path: for all paths of a group that has built-in kinds,
 * and for those of custom resources. Others end in a text, as paths outside of /api do.
 */
function isKnownPath({ group, version, resource }: RequestInfo, resources: ServedResources) {
  if (resources.find(group, version, resource, "") !== undefined) return true;
  return resources.all().some((one) => one.group === group && one.protobuf !== undefined);
}

/** The methods of a storage that verbs need. */
const METHODS: Readonly<Record<string, keyof RestStorage>> = {
  get: "get",
  list: "list",
  watch: "watch",
  update: "update",
  patch: "update",
  delete: "delete",
  deletecollection: "deleteCollection",
};

/** Paths and methods that do not fit the resource have no route. Throws ApiError 404 and 405. */
function checkRoute({ info, head }: Call, resource: ServedResource): void {
  const { namespace, verb, parts } = info;
  const { storage, subresource, namespaced } = resource;
  const isNamespaceItself = resource.group === "" && resource.resource === "namespaces";
  if (!namespaced && namespace !== "" && !isNamespaceItself) throw resourceNotServed();
  const isNamed = parts.length > 1;
  if (namespaced && namespace === "") {
    if (isNamed) throw resourceNotServed();
    if (verb !== "list" && verb !== "watch") throw withoutRoute(resource, verb || head.method);
  }
  const creates = subresource === "" ? storage.create && !isNamed : storage.createNamed;
  const method = METHODS[verb];
  const needsName = NAMED_VERBS.has(verb);
  const has = verb === "create" ? creates : method !== undefined && storage[method];
  if (!has || (needsName && !isNamed)) throw withoutRoute(resource, verb || head.method);
}

/** Built-in kinds have a route for each verb; custom ones are dispatched by verb. */
function withoutRoute(resource: ServedResource, verb: string): ApiError {
  const isCustom = resource.protobuf === undefined;
  return isCustom ? methodNotSupported(resource, verb) : methodNotAllowed();
}
