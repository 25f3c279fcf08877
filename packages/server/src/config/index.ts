/**
 * The configuration's entry point: read it with loadConfig, check a first start with
 * verifyBootstrap or verifyJoin.
 */

export { type ResolveHost, verifyBootstrap, verifyJoin } from "./bootstrap.ts";
export {
  type Budgets,
  budgetsFor,
  MAX_BUDGETED_THOUSANDTHS,
  type MachineLimits,
} from "./budgets.ts";
export type { DiscoveryConfig } from "./discovery-config.ts";
export { ConfigError, type ConfigErrorCode } from "./errors.ts";
export { type Gates, gates } from "./features.ts";
export { detectForeignData } from "./foreign-data.ts";
export { configurationDocs, helpText, type OptionDoc, optionDocs } from "./help.ts";
export { type Invocation, loadConfig } from "./load.ts";

export type { AutoCompaction, MemberConfig } from "./member-config.ts";
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
} from "./server-config.ts";
export { startFields } from "./start-fields.ts";
export type { ReadFile } from "./tls.ts";
export {
  hostPort,
  type InitialCluster,
  initialClusterText,
  listenHost,
  type MemberUrl,
  parseInitialCluster,
  parseUrl,
  parseUrls,
  sameUrl,
  type UrlScheme,
  urlsText,
} from "./url.ts";
export { ValueError } from "./values.ts";
