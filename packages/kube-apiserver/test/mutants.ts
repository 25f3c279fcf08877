/** Bugs of Kubernetes' access control and controllers, which their tests catch. */
import type { CatalogueBug } from "@quorate/sim";

const DIRECTORY = "packages/kube-apiserver/test/policy";
const GARBAGE = { tests: [`${DIRECTORY}/garbage.test.ts`], sim: "no" } as const;
const ACCESS = {
  tests: ["access", "rbac", "tokens", "impersonation", "webhooks"].map(
    (name) => `${DIRECTORY}/${name}.test.ts`,
  ),
  sim: "no",
} as const;

const SERVICES = {
  tests: ["packages/kube-apiserver/test/registry/service-network.test.ts"],
  sim: "no",
} as const;
const INTEROP = "packages/kube-apiserver/test/interop";
const AGGREGATION = { tests: [`${INTEROP}/aggregation.test.ts`], sim: "no" } as const;
const OIDC = { tests: [`${DIRECTORY}/oidc.test.ts`], sim: "no" } as const;
const LIMITS = { tests: [`${INTEROP}/limits.test.ts`], sim: "no" } as const;
const RULES = { tests: [`${INTEROP}/validation.test.ts`], sim: "no" } as const;
const REMOTE = {
  tests: [
    `${INTEROP}/access.test.ts`,
    ...["webhook-access", "proxied-users"].map((name) => `${DIRECTORY}/${name}.test.ts`),
  ],
  sim: "no",
} as const;

const SHARDS = {
  tests: ["packages/kube-apiserver/test/server/shards.test.ts"],
  sim: "no",
} as const;

const QUOTAS = {
  tests: ["packages/kube-apiserver/test/registry/resource-quota.test.ts"],
  sim: "no",
} as const;

const POD_ADMISSION = { tests: [`${DIRECTORY}/pod-admission.test.ts`], sim: "no" } as const;

export const BUGS: Readonly<Record<string, CatalogueBug>> = {
  "a second class becomes the default": {
    at: "kube-apiserver/src/admission/priority.ts#podPriority",
    find: 'operation === "UPDATE" && present === $object.metadata.name',
    put: 'operation === "UPDATE"',
    ...POD_ADMISSION,
  },
  "a certificate's request is judged by its first organization alone": {
    at: "kube-apiserver/src/admission/subject-restriction.ts#subjectRestriction",
    find: "$organizations.includes($masters)",
    put: "$organizations[0] === $masters",
    ...POD_ADMISSION,
  },
  "a dry run uses a quota": {
    at: "kube-apiserver/src/quota/resource-quota.ts#QuotaGate.#judge",
    find: "waiter.attributes.dryRun || next === running",
    put: "next === running",
    ...QUOTAS,
  },
  "requests beside each other are judged by the same quota": {
    at: "kube-apiserver/src/quota/resource-quota.ts#QuotaGate.#judge",
    find: "charged(running, $waiter, $nowMs)",
    put: "charged(quotas, $waiter, $nowMs)",
    ...QUOTAS,
  },
  "an address that another server gave away is given again": {
    at: "kube-apiserver/src/builtin/service-addresses.ts#ServiceAddresses.#isTaken",
    find: "if (isAlreadyExists($error)) return true;",
    put: "if (isAlreadyExists($error)) return false;",
    ...SERVICES,
  },
  "a service that is not written keeps what it was given": {
    at: "kube-apiserver/src/builtin/service-hooks.ts#ServiceAllocation.#begin",
    find: "isWritten ? freed : given",
    put: "freed",
    ...SERVICES,
  },
  "an address that a service gives up is kept": {
    at: "kube-apiserver/src/builtin/service-hooks.ts#freedBy",
    find: "!$left.addresses.includes($address)",
    put: "false",
    ...SERVICES,
  },
  "headers that say who asks go on to other API servers": {
    at: "kube-apiserver/src/aggregation/request-headers.ts#forwardedHeaders",
    find: "IDENTITY.test($name)",
    put: "false",
    ...AGGREGATION,
  },
  "redirects of other API servers are passed on": {
    at: "kube-apiserver/src/aggregation/forward.ts#forward",
    find: '$status >= 300 && $status <= 399 && $fields["location"] !== undefined',
    put: "false",
    ...AGGREGATION,
  },
  "pods take secrets that their account does not have": {
    at: "kube-apiserver/src/admission/service-account.ts#enforcesSecrets",
    find: "return goBool($value) === true;",
    put: "return false;",
    tests: [`${INTEROP}/accounts.test.ts`],
    sim: "no",
  },
  "an APIService that nobody manages is put right": {
    at: "kube-apiserver/src/aggregation/local-services.ts#LocalServices.#sync",
    find: 'if ($manager === "" || ($manager === ON_START && !this.#atStart.has($name))) return;',
    put: "if ($manager === ON_START && !this.#atStart.has($name)) return;",
    ...AGGREGATION,
  },
  "an ID token needs no claim that is required": {
    at: "kube-apiserver/src/authn/oidc-tokens.ts#OidcTokens.#userOf",
    find: "if ($value !== $wanted) $refusal;",
    put: "if ($value === undefined) $refusal;",
    ...OIDC,
  },
  "an address that is not verified is a user": {
    at: "kube-apiserver/src/authn/oidc-tokens.ts#OidcTokens.#nameOf",
    find: "$isEmail && $isVerified !== true",
    put: "false",
    ...OIDC,
  },
  "a container's own amounts are overwritten by defaults": {
    at: "kube-apiserver/src/admission/limit-ranger.ts#withResources",
    find: "!Object.hasOwn($own ?? {}, $name)",
    put: "true",
    ...LIMITS,
  },
  "the limits of a pod are defaults of its containers": {
    at: "kube-apiserver/src/admission/limit-ranger.ts#defaultsOf",
    find: '$limit.type !== "Container"',
    put: "false",
    ...LIMITS,
  },
  "two ports of a container have one name": {
    at: "kube-apiserver/src/builtin/rules/containers.ts#PORTS",
    find: "$names.has($name)",
    put: "false",
    ...RULES,
  },
  "a port of 0 is a port": {
    at: "kube-apiserver/src/builtin/rules/containers.ts#PORT_NUMBER",
    find: "numberOf($value) === 0",
    put: "false",
    ...RULES,
  },
  "a webhook's token is good for every audience": {
    at: "kube-apiserver/src/authn/webhook-tokens.ts#WebhookTokens.authenticateToken",
    find: "$common.length === 0",
    put: "false",
    ...REMOTE,
  },
  "what a webhook refuses is kept as long as what it allows": {
    at: "kube-apiserver/src/authz/webhook-authorizer.ts#WebhookAuthorizer.authorize",
    find: "$status.allowed === true ? $allowedMs : $refusedMs",
    put: "$allowedMs",
    ...REMOTE,
  },
  "every proxy is believed, whatever its name is": {
    at: "kube-apiserver/src/authn/proxied-users.ts#proxiedUser",
    find: "$allowedNames.length > 0 && !$allowedNames.includes($name)",
    put: "false",
    ...REMOTE,
  },
  "a proxy's certificate is a user's": {
    at: "host/node/tls.ts#certifiedPeer",
    find: '$proxyCaPem !== undefined && !isSignedBy($certificate, $trustedCaPem ?? "")',
    put: "false",
    ...REMOTE,
  },
  "the collector believes that an owner is gone by its uid alone": {
    at: "kube-apiserver/src/controllers/garbage-collector.ts#placeOf",
    find: `return \`\${$uid}/\${$kind}/\${$namespace}/\${$name}\`;`,
    put: "return [$uid, $kind, $namespace, $name][0];",
    ...GARBAGE,
  },
  "the collector deletes an object one of whose owners is there": {
    at: "kube-apiserver/src/controllers/garbage-collector.ts#GarbageCollector.#judge",
    find: `
      const { solid: $solid, dangling: $dangling, waiting: $waiting } = $owners;
      if ($solid.length > 0) $keep;`,
    put: `
      const { solid: $solid, dangling: $dangling, waiting: $waiting } = $owners;
      if ($solid.length > 1) $keep;`,
    ...GARBAGE,
  },
  "the collector takes an owner of an unknown kind for gone": {
    at: "kube-apiserver/src/controllers/garbage-collector.ts#GarbageCollector.#classify",
    find: 'return "unknown-kind";',
    put: `
      {
        owners.dangling.push(reference);
        continue;
      }`,
    ...GARBAGE,
  },
  "an owner in a namespace is looked for outside of it": {
    at: "kube-apiserver/src/controllers/gc-objects.ts#GcObjects.get",
    find: 'return "namespaced-owner";',
    put: 'return "absent";',
    ...GARBAGE,
  },
  "a foreground deletion does not wait": {
    at: "kube-apiserver/src/controllers/garbage-collector.ts#GarbageCollector.#deleteDependents",
    find: "$blocking.length === 0",
    put: "true",
    ...GARBAGE,
  },
  "a circle of foreground deletions stays": {
    at: "kube-apiserver/src/controllers/garbage-collector.ts#GarbageCollector.#judge",
    find: `
      [...$node.dependents].some(
        ({ isDeletingDependents: $isDeletingDependents }) => $isDeletingDependents,
      )`,
    put: "false",
    ...GARBAGE,
  },
  "an orphan keeps its reference": {
    at: "kube-apiserver/src/controllers/garbage-collector.ts#GarbageCollector.#attemptOrphan",
    find: "[...$node.dependents]",
    put: "[...$node.dependents].slice(1)",
    ...GARBAGE,
  },
  "dependents of a deleted object are not looked at": {
    at: "kube-apiserver/src/controllers/gc-graph.ts#OwnerGraph.remove",
    find: "for (const $dependent of $node.dependents) this.#listener.attemptDelete($dependent);",
    put: "",
    ...GARBAGE,
  },
  "a role of a namespace counts in all of them": {
    at: "kube-apiserver/src/authz/rbac-index.ts#RbacIndex.visitRules",
    find: `$namespace === "" ? [""] : ["", $namespace]`,
    put: "this.#subjects.keys()",
    ...ACCESS,
  },
  "a user grants verbs that it does not have": {
    at: "kube-apiserver/src/authz/escalation.ts#covers",
    find: "coversAll($owner.verbs, $right.verbs)",
    put: "$owner.verbs.length > 0",
    ...ACCESS,
  },
  "a rule for one name covers all names": {
    at: "kube-apiserver/src/authz/escalation.ts#coversName",
    find: `
      $wanted !== undefined &&
      $wanted.length > 0 &&
      $wanted.every(($one) => $owner.includes($one))`,
    put: "$wanted === undefined || $wanted.every(($one) => $owner.includes($one))",
    ...ACCESS,
  },
  "the algorithm in a token's header is not compared with the key's": {
    at: "kube-apiserver/src/authn/service-account-tokens.ts#ServiceAccountTokens.#verify",
    find: "$header.alg !== $algorithm",
    put: "$header.alg === undefined",
    ...ACCESS,
  },
  "a token is good for every audience": {
    at: "kube-apiserver/src/authn/service-account-tokens.ts#ServiceAccountTokens.#audiencesOf",
    find: `
      const $common = $of.filter($isCommon);
      if ($common.length === 0) $refusal;`,
    put: "const $common = $of.filter($isCommon);",
    ...ACCESS,
  },
  "a token outlives the object that it is bound to": {
    at: "kube-apiserver/src/authn/service-account-claims.ts#checkBound",
    find: "$object === undefined || isGone($object, $wallMs)",
    put: "$object !== undefined && isGone($object, $wallMs)",
    ...ACCESS,
  },
  "impersonated extra values need no permission": {
    at: "kube-apiserver/src/authn/impersonation.ts#checkExtra",
    find: "check({ ...$base, subresource: $subresource, name: $name })",
    put: "check({ ...$base, subresource: $subresource, name: $name }).catch(() => {})",
    ...ACCESS,
  },
  "a webhook guards its own configuration": {
    at: "kube-apiserver/src/admission/matching.ts#isExempt",
    find: `$kind.group !== "admissionregistration.k8s.io"`,
    put: `$kind.group !== "none"`,
    ...ACCESS,
  },
  "a webhook's denial is ignored with failurePolicy Ignore": {
    at: "kube-apiserver/src/admission/webhook-dispatch.ts#dispatch",
    find: "!$result.allowed",
    put: `!$result.allowed && webhook.spec.failurePolicy !== "Ignore"`,
    ...ACCESS,
  },
  "ranges of one selector may be of two fields": {
    at: "kube-apiserver/src/handlers/shard-selector.ts#selectorOf",
    find: "$other !== undefined",
    put: "false",
    ...SHARDS,
  },
  "a shard's last hash is the next one's, too": {
    at: "kube-storage/src/meta/shards.ts#ShardSelector.matches",
    find: "$hash < $end",
    put: "true",
    ...SHARDS,
  },
  "a shard counts as all objects": {
    at: "kube-storage/src/meta/selectors.ts#selectsAll",
    find: "$shard === undefined",
    put: "true",
    ...SHARDS,
  },
  "a shard selector counts where its gate is off": {
    at: "kube-apiserver/src/handlers/list-options.ts#listRequestOf",
    find: '$takesShards ? $query.first("shardSelector") : ""',
    put: '$query.first("shardSelector")',
    ...SHARDS,
  },
  "a cluster without streams is asked for each list": {
    at: "kube-apiserver/node/cluster.ts#LibraryCluster.rangeParts",
    find: "this.#clock.monotonicMs() < this.#inPagesUntilMs",
    put: "false",
    tests: ["packages/kube-apiserver/test/range-parts.test.ts"],
    sim: "no",
  },
  "a bundle of a signer's certificates needs no permission": {
    at: "kube-apiserver/src/admission/signer-permissions.ts#signerPermissions",
    find: 'await may("attest")',
    put: "true",
    tests: [`${DIRECTORY}/signers.test.ts`],
    sim: "no",
  },
};
