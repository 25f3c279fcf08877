/** The API server over sockets and files. */
export type { JsonRequest, JsonResponse } from "./json-client.ts";
export { runApiServerCommand } from "./run-command.ts";
export type { ServeOptions } from "./serve-options.ts";
export { type RunningApiServer, type StartOptions, startApiServer } from "./start.ts";
