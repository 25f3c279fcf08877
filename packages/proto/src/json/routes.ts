/** The paths of etcd's gateway. */

import { jsonRoutes } from "../gen/json.ts";
import { defined } from "../invariant.ts";
import type { HttpRoute } from "./interface.ts";
import { jsonTypes } from "./types.ts";

let routes: readonly HttpRoute[] | undefined;

/**
 * Every path with the method that it calls; several paths may call one method. Built at the first
 * call, as the types are.
 */
export function httpRoutes(): readonly HttpRoute[] {
  const types = jsonTypes();
  routes ??= Object.entries(jsonRoutes).map(([path, rpc]) => ({
    httpMethod: "POST",
    path,
    rpc,
    request: defined(types.get(rpc.requestType.typeName), rpc.requestType.typeName),
    response: defined(types.get(rpc.responseType.typeName), rpc.responseType.typeName),
  }));
  return routes;
}
