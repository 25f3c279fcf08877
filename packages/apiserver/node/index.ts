/** The API server over sockets and files. */
export { type RunningApiServer, type StartOptions, startApiServer } from "./start.ts";
