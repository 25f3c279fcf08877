/** The paths of etcd's gateway. */
import { jsonRoutes } from "../gen/json.ts";
import type { HttpRoute } from "./interface.ts";
import { jsonTypes } from "./types.ts";

/** Every path with the method that it calls; several paths may call one method. */
export const httpRoutes: readonly HttpRoute[] = Object.entries(jsonRoutes).map(([path, rpc]) => ({
  httpMethod: "POST",
  path,
  rpc,
  request: jsonTypes.get(rpc.requestType.typeName)!,
  response: jsonTypes.get(rpc.responseType.typeName)!,
}));
