/** What a program needs that only calls: the names of servers. */
export { nodeNames } from "../node/names.ts";
