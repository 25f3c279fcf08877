/**
 * The configuration's entry point: read it with loadConfig, check a first start with
 * verifyBootstrap or verifyJoin.
 */

export type { AutoCompaction, DiscoveryConfig, MemberConfig } from "@quorate/member";
export {
  type Budgets,
  budgetsFor,
  ConfigError,
  type ConfigErrorCode,
  detectForeignData,
  type Gates,
  gates,
  hostPort,
  type InitialCluster,
  initialClusterText,
  listenHost,
  MAX_BUDGETED_THOUSANDTHS,
  type MachineLimits,
  type MemberUrl,
  parseInitialCluster,
  parseUrl,
  parseUrls,
  type ResolveHost,
  sameUrl,
  type UrlScheme,
  urlsText,
  ValueError,
  verifyBootstrap,
  verifyJoin,
} from "@quorate/member";
export { configurationDocs, helpText, type OptionDoc, optionDocs } from "./help.ts";
export { type Invocation, loadConfig } from "./load.ts";
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
