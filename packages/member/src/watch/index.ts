/** The entry point of watch for the rest of the server. */
export type { ClientBudget } from "./client-budget.ts";
export { WATCH_LIMITS, type WatchLimits } from "./limits.ts";
export { WatchHub, type WatchHubDeps, type WatchHubOptions } from "./watch-hub.ts";
export type { WatchStream } from "./watch-stream.ts";
export type { StreamClient } from "./watcher.ts";
