/** The console: a page on the client port that shows a cluster, and what it needs of its member. */
export { type Console, openConsole } from "./src/console.ts";
export { LogRing } from "./src/log-ring.ts";
