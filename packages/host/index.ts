/**
 * The only door to the world: what a member needs of time, randomness, disk and logs, as small
 * interfaces.
 */
export * from "./src/advice.ts";
export * from "./src/clock.ts";
export * from "./src/connection-slots.ts";
export * from "./src/disk.ts";
export * from "./src/duration.ts";
export type { HttpHandler, HttpRequest, HttpResponse } from "./src/http.ts";
export * from "./src/keyspace.ts";
export { LineLimit } from "./src/line-limit.ts";
export * from "./src/logger.ts";
export type { Names, SrvTarget } from "./src/names.ts";
export { parentOf } from "./src/paths.ts";
export { escapeControls } from "./src/printable.ts";
export * from "./src/random.ts";
