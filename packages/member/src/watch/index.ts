/** The entry point of watch for the rest of the server. */
export type { WatchLimits } from "./limits.ts";
export { WatchHub } from "./watch-hub.ts";
export type { WatchStream } from "./watch-stream.ts";
