/**
 * One member of a cluster: configuration, bootstrap, the Raft loop, services, HTTP endpoints,
 * metrics. It knows no sockets.
 */
export type { ConfigFile } from "./src/config/config-file.ts";
export { configurationDocs, type OptionDoc, optionDocs } from "./src/config/help.ts";
export { configOfObject, loadConfig } from "./src/config/load.ts";
export type { Notice, ServerConfig } from "./src/config/server-config.ts";
export { nodeCiphers } from "./src/config/tls.ts";
export { httpRouter } from "./src/http/endpoints.ts";
export { peerEndpoints, versionOf } from "./src/http/peer-endpoints.ts";
