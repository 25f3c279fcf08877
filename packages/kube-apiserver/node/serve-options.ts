/** What an API server is started with, from flags or from a program. */

import { DEFAULT_PLUGINS, type PluginName } from "../src/admission/plugin-names.ts";
import type { OidcSettings } from "../src/authn/oidc-tokens.ts";
import type { ProxySettings } from "../src/authn/proxied-users.ts";
import type { WebhookDecisionSettings, WebhookTokenSettings } from "../src/authz/access.ts";
import type { AuthorizationMode } from "../src/authz/union.ts";
import type { PortRange } from "../src/builtin/node-ports.ts";
import type { ChaosFault } from "../src/chaos/chaos.ts";
import type { ChaosSettings } from "../src/chaos/settings.ts";
import { CONTROLLERS, type ControllerName } from "../src/controllers/controllers.ts";
import type { TypedResource } from "../src/typed/define-resource.ts";
import { DEFAULT_GATES, type FeatureGates } from "./feature-gates.ts";

/** The cluster that holds the objects. */
export interface EtcdOptions {
  readonly servers: readonly string[];
  /** Clusters of single resources. Absent: all are in the first one. */
  readonly overrides?: readonly EtcdOverride[];
  /** Paths of PEM files; "" for none. */
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** One of --etcd-servers-overrides: "/events#https://one:2379;https://two:2379". */
export interface EtcdOverride {
  /** "" for the core group. */
  readonly group: string;
  readonly resource: string;
  readonly servers: readonly string[];
}

export interface ServeOptions {
  readonly bindAddress: string;
  /** 0 for a free one. */
  readonly port: number;
  /** The address in the Endpoints "kubernetes"; "": bindAddress. */
  readonly advertiseAddress: string;
  /** Of the addresses of Services: one, or one of each family. */
  readonly serviceRanges: readonly string[];
  /** Of the ports of nodes that Services have. */
  readonly nodePorts: PortRange;
  /** Names and addresses in the certificate that the server makes, besides its own. */
  readonly hosts: readonly string[];
  /** Where certificates, and the data of the embedded member, are. */
  readonly dataDir: string;
  /** Undefined: a member in the same process. */
  readonly etcd: EtcdOptions | undefined;
  readonly etcdPrefix: string;
  /** How built-in kinds are written. Both forms are read. */
  readonly storageMediaType: "application/vnd.kubernetes.protobuf" | "application/json";
  /** Undefined: made in the data directory. */
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** "": the server's own authority. */
  readonly clientCaFile: string;
  /** Shown to other API servers; undefined: made in the data directory. */
  readonly proxyClient: { readonly certFile: string; readonly keyFile: string } | undefined;
  /** The CA of that certificate, and the names in it, for other servers to know. */
  readonly requestHeaderCaFile: string;
  /** The same for proxies in front of this server, where the CA is given. */
  readonly proxies: ProxySettings;
  /** Requests go on to an endpoint of a service, not to its address. */
  readonly aggregatorRouting: boolean;
  /** "" for none. */
  readonly tokenAuthFile: string;
  /** An OpenID Connect provider; undefined for none. */
  readonly oidc: (OidcSettings & { readonly caFile: string }) | undefined;
  readonly serviceAccounts: {
    readonly issuers: readonly string[];
    readonly audiences: readonly string[];
    readonly maxExpirationSeconds: number;
    /** "": made in the data directory. */
    readonly signingKeyFile: string;
    readonly keyFiles: readonly string[];
  };
  /** A webhook that knows tokens, by its kubeconfig; undefined for none. */
  readonly webhookTokens: (WebhookTokenSettings & { readonly configFile: string }) | undefined;
  readonly authorizationModes: readonly AuthorizationMode[];
  /** Of the mode Webhook. */
  readonly webhookDecisions:
    | (WebhookDecisionSettings & { readonly configFile: string })
    | undefined;
  readonly anonymousAuth: boolean;
  /** Of admission: those that are on besides the ones that always are. */
  readonly plugins: ReadonlySet<PluginName>;
  /** Those that run here, by kube-controller-manager's names. */
  readonly controllers: readonly ControllerName[];
  /** "" for none. */
  readonly encryptionConfigFile: string;
  readonly encryptionReload: boolean;
  readonly audit: AuditLogOptions;
  readonly eventTtlSeconds: number;
  readonly watchCache: boolean;
  /** 0: another server of the cluster compacts. */
  readonly compactionIntervalMs: number;
  /** Resources that the program adds (defineResource). */
  readonly resources: readonly TypedResource[];
  /** --max-requests-inflight and --max-mutating-requests-inflight together. */
  readonly maxInFlight: number;
  readonly requestTimeoutMs: number;
  readonly minRequestTimeoutMs: number;
  /** Where services of webhooks and API servers are: "name.namespace" or "name.namespace:port". */
  readonly webhookServices: ReadonlyMap<string, string>;
  /** How long /readyz fails before the port closes. */
  readonly shutdownDelayMs: number;
  /** "": admin.kubeconfig in the data directory. */
  readonly kubeconfigPath: string;
  /** Faults for tests of controllers; undefined: none. */
  readonly chaos: ChaosSettings | undefined;
  readonly featureGates: FeatureGates;
  /** Told of each fault. */
  readonly onFault?: ((fault: ChaosFault) => void) | undefined;
}

/** --audit-policy-file and --audit-log-*. Requests are recorded where both paths are given. */
export interface AuditLogOptions {
  readonly policyFile: string;
  /** A file, a named pipe, or "-" for standard output. */
  readonly path: string;
  /** Rotated files are deleted after so many days, or beyond so many; 0 for never. */
  readonly maxAgeDays: number;
  readonly maxBackups: number;
  /** A file is rotated at this size; 0 for 100. */
  readonly maxSizeMib: number;
  readonly compress: boolean;
  readonly format: "json" | "legacy";
  /** Requests are refused while the log cannot be written. */
  readonly isStrict: boolean;
}

/** The defaults, which are kube-apiserver's where it has the option, but for one plug-in. */
export const DEFAULT_SERVE_OPTIONS: Omit<ServeOptions, "dataDir"> = {
  bindAddress: "127.0.0.1",
  port: 0,
  advertiseAddress: "",
  serviceRanges: ["10.0.0.0/24"],
  nodePorts: { first: 30_000, last: 32_767 },
  hosts: [],
  etcd: undefined,
  etcdPrefix: "/registry",
  storageMediaType: "application/vnd.kubernetes.protobuf",
  tls: undefined,
  clientCaFile: "",
  proxyClient: undefined,
  requestHeaderCaFile: "",
  proxies: {
    allowedNames: [],
    usernameHeaders: ["X-Remote-User"],
    uidHeaders: ["X-Remote-Uid"],
    groupHeaders: ["X-Remote-Group"],
    extraPrefixes: ["X-Remote-Extra-"],
  },
  aggregatorRouting: false,
  tokenAuthFile: "",
  oidc: undefined,
  serviceAccounts: {
    issuers: ["https://kubernetes.default.svc.cluster.local"],
    audiences: [],
    maxExpirationSeconds: 0,
    signingKeyFile: "",
    keyFiles: [],
  },
  webhookTokens: undefined,
  authorizationModes: ["RBAC"],
  webhookDecisions: undefined,
  anonymousAuth: true,
  // As envtest starts kube-apiserver: pods need no service account.
  plugins: new Set(DEFAULT_PLUGINS.filter((name) => name !== "ServiceAccount")),
  controllers: CONTROLLERS,
  encryptionConfigFile: "",
  encryptionReload: false,
  audit: {
    policyFile: "",
    path: "",
    maxAgeDays: 0,
    maxBackups: 0,
    maxSizeMib: 0,
    compress: false,
    format: "json",
    isStrict: false,
  },
  eventTtlSeconds: 3600,
  watchCache: true,
  featureGates: DEFAULT_GATES,
  compactionIntervalMs: 300_000,
  resources: [],
  maxInFlight: 600,
  requestTimeoutMs: 60_000,
  minRequestTimeoutMs: 1_800_000,
  webhookServices: new Map(),
  shutdownDelayMs: 0,
  kubeconfigPath: "",
  chaos: undefined,
};
