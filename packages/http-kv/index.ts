/** Plain keys over HTTP: /kv/, /watch/ and /txn. */
export { Credentials } from "./src/credentials.ts";
export { type HttpKvParts, httpKv } from "./src/index.ts";
export { Problem } from "./src/problems.ts";
