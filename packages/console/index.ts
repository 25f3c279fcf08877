/** The console: a page on the client port that shows a cluster, and what it needs of its member. */
export { type Console, type ConsoleParts, openConsole } from "./src/console.ts";
export { LogRing } from "./src/log-ring.ts";
export { MEMBER_REPORT_PATH } from "./src/overview.ts";
