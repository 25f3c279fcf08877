/** The door of watch for the rest of the server. */
export { WATCH_LIMITS, type WatchLimits } from "./limits.ts";
export { WatchHub, type WatchHubDeps, type WatchHubOptions } from "./watch-hub.ts";
export type { WatchPermission, WatchStream } from "./watch-stream.ts";
