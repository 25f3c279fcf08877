/** The API server over sockets and files. */
export type { JsonRequest, JsonResponse } from "./json-client.ts";
export type { ServeOptions } from "./serve-options.ts";
export { type RunningApiServer, type StartOptions, startApiServer } from "./start.ts";

/** The program `quorate apiserver`. Who embeds a server needs none of it, and does not load it. */
export const loadApiServerProgram = async () => (await import("./program.ts")).apiServerProgram;
