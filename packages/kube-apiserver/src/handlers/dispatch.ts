/**
 * From a resource request to its handler (apiserver: endpoints/installer.go,
 * apiextensions: customresource_handler.go). The paths that a resource has are an allow-list. Each
 * is a form of Target with the verbs that the storage can serve there:
 *
 *     namespaces/{namespace}/configmaps           list watch create deletecollection
 *     namespaces/{namespace}/configmaps/{name}    get update patch delete
 *     configmaps                                  list watch, over all namespaces
 *     watch/...                                   watch, the deprecated form of ?watch=1
 *
 * What is not in the list has no route. The path decides where a value stands, so what was
 * authorized is what is served.
 */

import {
  methodNotSupported,
  notFound,
  type RequestContext,
  type RestStorage,
  type ServedResource,
  type ServedResources,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import type { Call } from "./call.ts";
import { create } from "./create.ts";
import { deleteCollection, deleteOne } from "./delete.ts";
import { offerOf } from "./negotiation.ts";
import { patch } from "./patch.ts";
import { get, listOrWatch } from "./read.ts";
import type { HandlerDeps, ResourceCall } from "./resource-call.ts";
import { negotiated } from "./send-object.ts";
import { methodNotAllowed, nameRequired, requestTimeout, resourceNotServed } from "./statuses.ts";
import type { Target } from "./target.ts";
import { update } from "./update.ts";

const NOT_FOUND = {
  "content-type": "text/plain; charset=utf-8",
  "x-content-type-options": "nosniff",
};

type Handler = (given: ResourceCall, deps: HandlerDeps) => Promise<void>;

/** By verb: the one that was authorized. */
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

/** Writes have their own, shorter, timeout. */
const WRITE_VERBS = new Set(["create", "update", "patch", "delete"]);

/** Serves a resource request. Rejects with ApiError. */
export async function serveResource(
  call: Call,
  resources: ServedResources,
  deps: HandlerDeps,
): Promise<void> {
  const { target } = call;
  const resource = routed(target, resources);
  if (resource === "no page") {
    call.respond(404, NOT_FOUND, "404 page not found\n");
    return;
  }
  if (resource.deprecationWarning !== undefined) call.warn(resource.deprecationWarning);
  const ctx: RequestContext = {
    user: call.user,
    namespace: resource.namespaced ? target.namespace : "",
    signal: call.canceller,
    warn: (text) => call.warn(text),
  };
  const form = negotiated(call, offerOf(resource));
  const chaos = deps.chaos?.of(call, resource);
  if (chaos?.isCut()) {
    call.abort();
    return;
  }
  const given: ResourceCall = { call, target, resource, ctx, form, chaos };
  const handler = defined(HANDLERS[target.verb], "the handler");
  if (!WRITE_VERBS.has(target.verb)) return handler(given, deps);
  chaos?.mayLoseAnswer();
  const forget = deps.writeTimeouts.add(() => call.canceller.abort(requestTimeout()));
  try {
    await handler(given, deps);
  } finally {
    forget();
  }
}

/**
 * The resource that serves the target. Throws ApiError 404 where its path has no route, 405 where
 * the route does not have the verb, and 400 where it lacks a name.
 * @returns "no page" where Kubernetes' answer is the text of paths outside of /api
 */
export function routed(target: Target, resources: ServedResources): ServedResource | "no page" {
  const { group, version, resource } = target;
  if (!target.isBelowRoot) return "no page";
  if (resources.hasBuiltIns(group)) return builtInRoute(target, resources);
  const main = resources.find(group, version, resource, "");
  return main === undefined ? "no page" : customRoute(target, main, resources);
}

/** Built-in kinds have a route for each form of path and method. */
function builtInRoute(target: Target, resources: ServedResources): ServedResource {
  const { group, version, subresource, verb, method, form } = target;
  const resource = resources.find(group, version, target.resource, subresource);
  const verbs = resource && routesOf(resource).get(form);
  if (resource === undefined || verbs === undefined) throw resourceNotServed();
  const isNameless = form.includes("{name}") && !target.isNamed;
  if (isNameless && [...verbs].some((one) => isMethodOf(one, method))) throw nameRequired();
  if (isNameless || !verbs.has(verb) || !isMethodOf(verb, method)) throw methodNotAllowed();
  return resource;
}

/**
 * Custom kinds are dispatched by verb, with every method that stands for it; what stands behind a
 * subresource is not looked at.
 */
function customRoute(
  target: Target,
  main: ServedResource,
  resources: ServedResources,
): ServedResource | "no page" {
  const { group, version, subresource, namespace, verb } = target;
  if (!main.namespaced && namespace !== "") return "no page";
  if (main.namespaced && namespace === "" && verb !== "list" && verb !== "watch") return "no page";
  const resource = resources.find(group, version, target.resource, subresource);
  if (resource === undefined) throw notFound(main, target.name);
  // What is created has the name in the body: one in the path would be authorized instead.
  const isOther = verb === "create" && subresource === "" && target.isNamed;
  if (!verbsOf(resource).includes(verb) || isOther) throw methodNotSupported(resource, verb);
  if ((verb === "update" || verb === "patch") && !target.isNamed) throw nameRequired();
  return resource;
}

/** The methods of a storage that each verb needs, in the order of discovery. */
const STORAGE_METHODS: readonly (readonly [string, ...(keyof RestStorage)[]])[] = [
  ["create", "create"],
  ["delete", "delete"],
  ["deletecollection", "deleteCollection"],
  ["get", "get"],
  ["list", "list"],
  ["patch", "get", "update"],
  ["update", "update"],
  ["watch", "watch"],
];

/** The verbs that a resource or subresource serves. */
export function verbsOf({ storage, subresource }: ServedResource): string[] {
  const creates = subresource === "" ? storage.create : storage.createNamed;
  return STORAGE_METHODS.filter(([verb, ...methods]) =>
    verb === "create"
      ? creates !== undefined
      : methods.every((method) => storage[method] !== undefined),
  ).map(([verb]) => verb);
}

/** The method of HTTP that stands for each verb; HEAD has no route. */
const HTTP_METHODS: Readonly<Record<string, string>> = {
  create: "POST",
  delete: "DELETE",
  deletecollection: "DELETE",
  get: "GET",
  list: "GET",
  patch: "PATCH",
  update: "PUT",
  watch: "GET",
};

/** Whether `method` is the one that stands for `verb`. */
export function isMethodOf(verb: string, method: string): boolean {
  return HTTP_METHODS[verb] === method;
}

/** The verbs of each form of path. */
export type Routes = ReadonlyMap<string, ReadonlySet<string>>;

const known = new WeakMap<ServedResource, Routes>();

/** The routes of a resource, or of a subresource. */
export function routesOf(served: ServedResource): Routes {
  const present = known.get(served);
  if (present !== undefined) return present;
  const routes = madeRoutes(served);
  known.set(served, routes);
  return routes;
}

function madeRoutes(served: ServedResource): Routes {
  const { resource, subresource, namespaced } = served;
  const base = namespaced ? `namespaces/{namespace}/${resource}` : resource;
  const routes = new Map<string, ReadonlySet<string>>();
  const able = verbsOf(served);
  const add = (form: string, ...verbs: readonly string[]): void => {
    const here = verbs.filter((verb) => able.includes(verb));
    if (here.length > 0) routes.set(form, new Set(here));
  };
  if (subresource !== "") {
    add(`${base}/{name}/${subresource}`, "get", "update", "patch", "delete", "create");
    return routes;
  }
  add(base, "list", "watch", "create", "deletecollection");
  add(`${base}/{name}`, "get", "update", "patch", "delete");
  add(`watch/${base}`, "watch");
  add(`watch/${base}/{name}`, "watch");
  if (!namespaced) return routes;
  add(resource, "list", "watch");
  add(`watch/${resource}`, "watch");
  return routes;
}
