/** GET of one object and of a collection (apiserver: handlers/get.go). */
import { badRequest, type RestListOptions, storageWith } from "@quorate/kube-storage";
import { listRequestOf } from "./list-options.ts";
import type { HandlerDeps, ResourceCall } from "./resource-call.ts";
import { sendList } from "./send-list.ts";
import { sendObject } from "./send-object.ts";
import { serveWatch } from "./watch.ts";

export async function get(given: ResourceCall, deps: HandlerDeps): Promise<void> {
  const { call, target, resource, ctx, form } = given;
  if (call.query.flag("export") === true)
    throw badRequest("the export parameter, deprecated since v1.14, is no longer supported");
  const resourceVersion = call.query.first("resourceVersion");
  const storage = storageWith(resource.storage, "get");
  const stored = await storage.get(ctx, target.name, { resourceVersion });
  await sendObject(call, deps, resource, form, 200, {
    object: () => stored.object(),
    json: () => stored.json(),
  });
}

/** A list, or a watch where ?watch=1 or the path asks for one. */
export async function listOrWatch(given: ResourceCall, deps: HandlerDeps): Promise<void> {
  const { call, target, resource, ctx, form, chaos } = given;
  const isWatch = target.verb === "watch";
  const options = listRequestOf(call.query, target.name, isWatch, deps.takesShards);
  if (isWatch) return serveWatch(given, deps, options);
  const storage = storageWith(resource.storage, "list");
  const read = (wanted: RestListOptions) => storage.list(ctx, wanted);
  const list = await (chaos?.list(options, read) ?? read(options));
  await sendList(call, deps, resource, form, list);
}
