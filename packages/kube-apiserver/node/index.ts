/** The API server over sockets and files. */
export type { JsonRequest, JsonResponse } from "./json-client.ts";
export type { ServeOptions } from "./serve-options.ts";
export {
  loadApiServerProgram,
  type RunningApiServer,
  type StartOptions,
  startApiServer,
} from "./start.ts";
