/** The entry point of http-kv. */
export { Credentials } from "./src/credentials.ts";
export { type HttpKvParts, httpKv } from "./src/index.ts";
export { Problem } from "./src/problems.ts";
