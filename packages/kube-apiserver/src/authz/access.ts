/**
 * Who may do what on one server: authentication, authorization and the resources that belong to
 * them, put together. The composition root makes one, declares resources with `resources`, serves
 * `endpoints` beside the others, and calls `start` when all are served.
 *
 *     const access = new Access(options, deps);
 *     specs.push(...access.resources(kindSource));        roles and bindings
 *     served.push(...access.endpoints(kindSource));       reviews, serviceaccounts/token
 *     await access.start(servedResources);                resolves when decisions are possible
 */

import type { Clock, Logger, Random } from "@quorate/host";
import {
  ApiError,
  type Authenticator,
  type Getter,
  type GroupVersionKind,
  type KindSource,
  type KubeObject,
  type Lister,
  newUid,
  type ResourceSpec,
  type RestStorage,
  type ServedResource,
  type ServedResources,
  type UserInfo,
  type Watcher,
} from "@quorate/kube-storage";
import { defined } from "@quorate/proto";
import { type FetchPage, type OidcSettings, OidcTokens } from "../authn/oidc-tokens.ts";
import type { ProxySettings } from "../authn/proxied-users.ts";
import {
  type PostReview,
  RemoteReviews,
  type RemoteReviewVersion,
} from "../authn/remote-reviews.ts";
import {
  RequestAuthenticator,
  type Sha256Hex,
  TokenCache,
} from "../authn/request-authenticator.ts";
import { selfSubjectReviews, tokenReviews } from "../authn/reviews.ts";
import type { BoundObjects } from "../authn/service-account-claims.ts";
import type { ServiceAccountKeys } from "../authn/service-account-keys.ts";
import { ServiceAccountTokens } from "../authn/service-account-tokens.ts";
import { anyTokenAuthenticator, type TokenAuthenticator } from "../authn/token-authenticator.ts";
import { sha256HexOf, staticTokens } from "../authn/token-file.ts";
import { tokenRequests } from "../authn/token-requests.ts";
import { servedUnstored } from "../authn/unstored-resource.ts";
import { WebhookTokens } from "../authn/webhook-tokens.ts";
import { Informer, type InformerDependencies } from "../informers/informer.ts";
import { systemContext } from "../informers/system-context.ts";
import {
  localSubjectAccessReviews,
  selfSubjectAccessReviews,
  selfSubjectRulesReviews,
  subjectAccessReviews,
} from "./access-reviews.ts";
import type { Authorizer } from "./authorizer.ts";
import type { GrantDependencies } from "./grant-check.ts";
import { RbacAuthorizer, type RuleResolver } from "./rbac-authorizer.ts";
import { RbacIndex } from "./rbac-index.ts";
import { rbacResources } from "./rbac-kinds.ts";
import { RBAC_GROUP } from "./rules.ts";
import { type AuthorizationMode, unionAuthorizer } from "./union.ts";
import { type DecisionTimes, WebhookAuthorizer } from "./webhook-authorizer.ts";

export interface ServiceAccountOptions {
  /** --service-account-issuer: the first one signs. */
  readonly issuers: readonly string[];
  /** --api-audiences; by default the issuers. */
  readonly audiences: readonly string[];
  /** --service-account-max-token-expiration in seconds; 0 for no bound. */
  readonly maxExpirationSeconds: number;
  readonly keys: ServiceAccountKeys;
}

export interface AccessOptions {
  /** --authorization-mode. */
  readonly modes: readonly AuthorizationMode[];
  /** --anonymous-auth. */
  readonly allowAnonymous: boolean;
  /** --client-ca-file is set. */
  readonly clientCertificates: boolean;
  /** Of --token-auth-file (parseTokenFile); undefined without one. */
  readonly staticTokens: ReadonlyMap<string, UserInfo> | undefined;
  readonly serviceAccounts: ServiceAccountOptions;
  /** Absent: no proxy is believed. */
  readonly proxies?: ProxySettings | undefined;
  /** Absent: there is no OpenID Connect provider. */
  readonly oidc?: OidcSettings | undefined;
  /** Absent: no webhook knows tokens. */
  readonly webhookTokens?: WebhookTokenSettings | undefined;
  /** Of the mode Webhook. */
  readonly webhookDecisions?: WebhookDecisionSettings | undefined;
}

export interface AccessDependencies {
  readonly clock: Clock;
  /** The platform's; in JavaScript where it is absent. */
  readonly sha256Hex?: Sha256Hex | undefined;
  readonly random: Random;
  readonly logger: Logger;
  /** Reads pages of the OpenID Connect provider. */
  readonly fetchPage?: FetchPage | undefined;
  /** Ask the webhooks of `webhookTokens` and `webhookDecisions`. */
  readonly postTokenReview?: PostReview | undefined;
  readonly postAccessReview?: PostReview | undefined;
}

export interface WebhookTokenSettings {
  readonly version: RemoteReviewVersion;
  readonly cacheTtlMs: number;
}

export interface WebhookDecisionSettings extends DecisionTimes {
  readonly version: RemoteReviewVersion;
}

type SourceOf = (kind: GroupVersionKind) => KindSource;

export class Access {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer & RuleResolver;
  readonly #options: AccessOptions;
  readonly #deps: AccessDependencies;
  readonly #index = new RbacIndex();
  readonly #rbac = new RbacAuthorizer(this.#index);
  readonly #issuer: ServiceAccountTokens;
  readonly #oidc: OidcTokens | undefined;
  readonly #tokens: TokenAuthenticator;
  #served: ServedResources | undefined;
  #informers: RbacInformers | undefined;

  constructor(options: AccessOptions, deps: AccessDependencies) {
    this.#options = options;
    this.#deps = deps;
    const { clock, random, logger } = deps;
    const { serviceAccounts, allowAnonymous, clientCertificates } = options;
    const uuids = random.fork("token ids");
    this.#issuer = new ServiceAccountTokens(serviceAccounts, serviceAccounts.keys, {
      clock,
      objects: this.#objects,
      newUuid: () => newUid(uuids),
    });
    const fixed = options.staticTokens === undefined ? [] : [staticTokens(options.staticTokens)];
    const { oidc } = options;
    const { fetchPage } = deps;
    if (oidc !== undefined && fetchPage !== undefined) {
      const forOidc = {
        fetchPage,
        clock,
        random: random.fork("oidc"),
        logger: logger.child("oidc"),
      };
      this.#oidc = new OidcTokens(oidc, forOidc);
    }
    const provided = this.#oidc === undefined ? [] : [this.#oidc];
    const remote = this.#webhookTokens();
    const all = anyTokenAuthenticator([...fixed, this.#issuer, ...provided, ...remote]);
    const { sha256Hex } = deps;
    this.#tokens = new TokenCache(all, clock, { sha256Hex });
    const { audiences } = serviceAccounts;
    this.authenticator = new RequestAuthenticator(
      {
        clientCertificates,
        proxies: options.proxies,
        tokens: this.#tokens,
        audiences,
        allowAnonymous,
      },
      { logger: logger.child("apiserver/authentication"), monotonicMs: () => clock.monotonicMs() },
    );
    this.authorizer = unionAuthorizer(options.modes, this.#rbac, this.#webhookAuthorizer());
  }

  /** Whether all roles and bindings are known; before, RBAC allows only system:masters. */
  get isReady(): boolean {
    return this.#informers?.hasSynced ?? false;
  }

  /** The declarations of roles and bindings. */
  resources(source: SourceOf): readonly ResourceSpec[] {
    const of = (kind: string): KindSource => source({ group: RBAC_GROUP, version: "v1", kind });
    return rbacResources(of, () => this.#grantDependencies);
  }

  /** The endpoints that calculate their responses. */
  endpoints(source: SourceOf): readonly ServedResource[] {
    const { audiences } = this.#options.serviceAccounts;
    const { clock } = this.#deps;
    const review = (group: string, kind: string, storage: RestStorage, namespaced = false) =>
      servedUnstored(
        {
          group,
          version: "v1",
          resource: `${kind.toLowerCase()}s`,
          singular: kind.toLowerCase(),
          namespaced,
          storage,
        },
        source({ group, version: "v1", kind }),
      );
    const authentication = "authentication.k8s.io";
    const authorization = "authorization.k8s.io";
    return [
      review(authentication, "TokenReview", tokenReviews(this.#tokens, audiences)),
      review(
        authentication,
        "SelfSubjectReview",
        selfSubjectReviews(() => clock.wallMs()),
      ),
      review(authorization, "SubjectAccessReview", subjectAccessReviews(this.authorizer)),
      review(
        authorization,
        "LocalSubjectAccessReview",
        localSubjectAccessReviews(this.authorizer),
        true,
      ),
      review(authorization, "SelfSubjectAccessReview", selfSubjectAccessReviews(this.authorizer)),
      review(authorization, "SelfSubjectRulesReview", selfSubjectRulesReviews(this.authorizer)),
      this.#tokenEndpoint(source),
    ];
  }

  /** Follows roles and bindings. Resolves when all are known. */
  async start(served: ServedResources): Promise<void> {
    this.#served = served;
    this.#oidc?.start();
    const { clock, random, logger } = this.#deps;
    this.#informers = new RbacInformers(
      this.#index,
      (resource) =>
        defined(served.find(RBAC_GROUP, "v1", resource, ""), "the served resource")
          .storage as Lister & Watcher,
      { clock, random: random.fork("rbac informers"), logger: logger.child("apiserver/rbac") },
    );
    await this.#informers.start();
  }

  stop(): void {
    this.#informers?.stop();
    this.#oidc?.stop();
  }

  #webhookTokens(): TokenAuthenticator[] {
    const { webhookTokens: settings, serviceAccounts } = this.#options;
    const { postTokenReview: post, clock, random, sha256Hex } = this.#deps;
    if (settings === undefined || post === undefined) return [];
    const kind = { group: "authentication.k8s.io", kind: "TokenReview" } as const;
    const reviews = new RemoteReviews(
      { ...kind, version: settings.version },
      { post, clock, random: random.fork("token reviews") },
    );
    const logger = this.#deps.logger.child("apiserver/authentication");
    const tokens = new WebhookTokens(reviews, serviceAccounts.audiences, (error) =>
      logger.error("Failed to make webhook authenticator request", { error }),
    );
    const { cacheTtlMs: ttlMs } = settings;
    return [new TokenCache(tokens, clock, { ttlMs, unknownTtlMs: ttlMs, sha256Hex })];
  }

  #webhookAuthorizer(): WebhookAuthorizer | undefined {
    const { webhookDecisions: settings } = this.#options;
    const { postAccessReview: post, clock, random, logger, sha256Hex = sha256HexOf } = this.#deps;
    if (settings === undefined || post === undefined) return undefined;
    const kind = { group: "authorization.k8s.io", kind: "SubjectAccessReview" } as const;
    const reviews = new RemoteReviews(
      { ...kind, version: settings.version },
      { post, clock, random: random.fork("access reviews") },
    );
    return new WebhookAuthorizer(settings, {
      reviews,
      sha256Hex,
      nowMs: () => clock.monotonicMs(),
      logger: logger.child("apiserver/authorization"),
    });
  }

  get #grantDependencies(): GrantDependencies {
    return { authorizer: this.authorizer, rbac: this.#rbac, roles: this.#index };
  }

  get #objects(): BoundObjects {
    return {
      get: async (resource, namespace, name) => {
        const storage = this.#served?.find("", "v1", resource, "")?.storage;
        if (storage?.get === undefined) return undefined;
        try {
          const found = await storage.get(systemContext(namespace), name, { resourceVersion: "" });
          return found.object();
        } catch (error) {
          if (error instanceof ApiError && error.httpStatus === 404) return undefined;
          throw error;
        }
      },
    };
  }

  #tokenEndpoint(source: SourceOf): ServedResource {
    const { audiences, maxExpirationSeconds } = this.#options.serviceAccounts;
    const accounts: Getter = {
      get: (ctx, name, options) =>
        (
          defined(
            defined(this.#served, "the served resource").find("", "v1", "serviceaccounts", ""),
            "the served resource",
          ).storage as Getter
        ).get(ctx, name, options),
    };
    const storage = tokenRequests(
      { audiences, maxExpirationSeconds },
      {
        clock: this.#deps.clock,
        tokens: this.#issuer,
        serviceAccounts: accounts,
        objects: this.#objects,
      },
    );
    return servedUnstored(
      {
        group: "",
        version: "v1",
        resource: "serviceaccounts",
        singular: "",
        subresource: "token",
        namespaced: true,
        storage,
      },
      source({ group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" }),
    );
  }
}

const RBAC_RESOURCES = ["roles", "clusterroles", "rolebindings", "clusterrolebindings"] as const;
type RbacResource = (typeof RBAC_RESOURCES)[number];

/** Feeds the RBAC index with the roles and bindings of the cluster. */
class RbacInformers {
  readonly #informers: readonly Informer[];

  constructor(
    index: RbacIndex,
    sourceOf: (resource: RbacResource) => Lister & Watcher,
    dependencies: InformerDependencies,
  ) {
    const roles = {
      added: (role: KubeObject) => index.setRole(role),
      updated: (role: KubeObject) => index.setRole(role),
      deleted: (role: KubeObject) => index.deleteRole(role),
    };
    const bindings = {
      added: (binding: KubeObject) => index.addBinding(binding),
      updated(binding: KubeObject, old: KubeObject) {
        index.deleteBinding(old);
        index.addBinding(binding);
      },
      deleted: (binding: KubeObject) => index.deleteBinding(binding),
    };
    this.#informers = RBAC_RESOURCES.map((resource) => {
      const handler = resource.endsWith("bindings") ? bindings : roles;
      return new Informer({ storage: sourceOf(resource) }, handler, dependencies);
    });
  }

  /** Resolves when all roles and bindings are known. */
  async start(): Promise<void> {
    for (const informer of this.#informers) informer.start();
    await Promise.all(this.#informers.map(({ synced }) => synced));
  }

  get hasSynced(): boolean {
    return this.#informers.every(({ hasSynced }) => hasSynced);
  }

  stop(): void {
    for (const informer of this.#informers) informer.stop();
  }
}
