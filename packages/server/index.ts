/**
 * One member of a cluster: configuration, bootstrap, the Raft loop, services, HTTP endpoints,
 * metrics. It knows no sockets.
 */
export type { ConfigFile } from "./src/config/config-file.ts";
export { configurationDocs, helpText, type OptionDoc, optionDocs } from "./src/config/help.ts";
export { configOfObject, type Invocation, loadConfig, type Run } from "./src/config/load.ts";
export type {
  AuditConfig,
  HttpConfig,
  KeepaliveConfig,
  LogConfig,
  LogOutput,
  LogThreshold,
  Notice,
  ServerConfig,
  TlsConfig,
  TracingConfig,
} from "./src/config/server-config.ts";
export { startFields } from "./src/config/start-fields.ts";
export { nodeCiphers, type ReadFile } from "./src/config/tls.ts";
export { httpRouter, versionEndpoint } from "./src/http/endpoints.ts";
export { checkEndpoints, type HealthSource, healthEndpoint } from "./src/http/health.ts";
export { peerEndpoints, versionOf } from "./src/http/peer-endpoints.ts";
