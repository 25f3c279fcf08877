/**
 * From a resource request to its handler (apiserver: endpoints/installer.go,
 * apiextensions: customresource_handler.go).
 */
import { badRequest } from "../meta/status.ts";
import { methodNotSupported } from "../meta/status-errors.ts";
import type { RequestContext } from "../rest/context.ts";
import type { ServedResource, ServedResources } from "../rest/served-resource.ts";
import type { Call } from "../server/call.ts";
import { create } from "./create.ts";
import { deleteCollection, deleteOne } from "./delete.ts";
import { patch } from "./patch.ts";
import { get, listOrWatch } from "./read.ts";
import { type HandlerDeps, type ResourceCall, WRITE_TIMEOUT_MS } from "./resource-call.ts";
import { negotiated } from "./send-object.ts";
import { requestTimeout, resourceNotServed } from "./statuses.ts";
import { offerOf } from "./transform.ts";
import { update } from "./update.ts";

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
  if (resource === undefined || parts.length > 3) throw resourceNotServed();
  const handler = HANDLERS[info.verb];
  if (handler === undefined) throw methodNotSupported(resource, info.verb || call.head.method);
  checkScope(call, resource);
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
  const timer = deps.clock.after(WRITE_TIMEOUT_MS, () => call.canceller.abort(requestTimeout()));
  try {
    await handler(given, deps);
  } finally {
    timer.cancel();
  }
}

/** Paths that do not fit the scope of the resource are not served. Throws ApiError. */
function checkScope({ info }: Call, resource: ServedResource): void {
  const { namespace, verb, parts } = info;
  const isNamespaceItself = resource.group === "" && resource.resource === "namespaces";
  if (!resource.namespaced && namespace !== "" && !isNamespaceItself) throw resourceNotServed();
  if (resource.namespaced && namespace === "") {
    if (verb === "list" || verb === "watch") return;
    if (verb === "create" && parts.length === 1)
      throw badRequest("an empty namespace may not be set during creation");
    throw resourceNotServed();
  }
}
