/** The entry point of v2. */
export { directoryExpiry } from "./src/expiry.ts";
export { v2Routes } from "./src/routes.ts";
