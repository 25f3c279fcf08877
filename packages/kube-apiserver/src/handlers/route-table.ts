/**
 * The paths that a resource has, as an allow-list (apiserver: pkg/endpoints/installer.go). Each
 * path is a form of Target with the verbs that the storage can serve there:
 *
 *     namespaces/{namespace}/configmaps           list watch create deletecollection
 *     namespaces/{namespace}/configmaps/{name}    get update patch delete
 *     configmaps                                  list watch, over all namespaces
 *     watch/...                                   watch, the deprecated form of ?watch=1
 *
 * What is not in the list has no route. The path decides where a value stands, so what was
 * authorized is what is served.
 */
import type { RestStorage, ServedResource } from "@quorate/kube-storage";

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
