/** etcd's v2 API on keys of v3. */
export { v2Routes } from "./src/routes.ts";
