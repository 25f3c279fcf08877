/** The programs that the API server adds to `./dev`. */
import type { PackageCommands } from "../../../scripts/dev/commands.ts";

export const commands: PackageCommands = {
  bench: {
    apiserver: {
      about: "quorate apiserver beside kube-apiserver",
      file: "packages/kube-apiserver/test/bench/main.ts",
    },
  },
  compare: {
    apply: {
      about: "Kubernetes' patches",
      file: "packages/kube-apiserver/test/apply/reference-main.ts",
    },
    cel: {
      about: "expressions with Kubernetes' own CEL environment",
      file: "packages/kube-apiserver/test/interop/cel/main.ts",
    },
    "kube-api": {
      about: "kube-apiserver's responses",
      file: "packages/kube-apiserver/test/interop/rest/main.ts",
    },
    access: {
      about: "webhooks that know tokens and decide, before kube-apiserver",
      file: "packages/kube-apiserver/test/interop/access/main.ts",
    },
    accounts: {
      about: "kube-apiserver's service accounts of pods",
      file: "packages/kube-apiserver/test/interop/accounts/main.ts",
    },
    aggregation: {
      about: "kube-apiserver before other API servers",
      file: "packages/kube-apiserver/test/interop/aggregation/main.ts",
    },
    defaults: {
      about: "the objects that kube-apiserver makes at its start",
      file: "packages/kube-apiserver/test/interop/defaults/main.ts",
    },
    definitions: {
      about: "definitions of resources of well-known projects",
      file: "packages/kube-apiserver/test/interop/definitions/main.ts",
    },
    limits: {
      about: "kube-apiserver's LimitRanges",
      file: "packages/kube-apiserver/test/interop/limits/main.ts",
    },
    quotas: {
      about: "kube-apiserver's ResourceQuotas",
      file: "packages/kube-apiserver/test/interop/quotas/main.ts",
    },
    services: {
      about: "addresses and ports that kube-apiserver gives to Services",
      file: "packages/kube-apiserver/test/interop/services/main.ts",
    },
    routes: {
      about: "kube-apiserver's routes",
      file: "packages/kube-apiserver/test/interop/routes/main.ts",
    },
    audit: {
      about: "kube-apiserver's audit log",
      file: "packages/kube-apiserver/test/interop/audit/main.ts",
    },
    policies: {
      about: "kube-apiserver's admission policies",
      file: "packages/kube-apiserver/test/interop/policies/main.ts",
    },
    validation: {
      about: "what kube-apiserver refuses of built-in kinds",
      file: "packages/kube-apiserver/test/interop/validation/main.ts",
    },
    policy: {
      about: "kube-apiserver's decisions",
      file: "packages/kube-apiserver/test/interop/policy/main.ts",
    },
    kubectl: {
      about: "kubectl's command lines",
      file: "packages/kube-apiserver/test/interop/kubectl/main.ts",
    },
  },
  clients: {
    go: {
      about: "client-go and controller-runtime",
      file: "packages/kube-apiserver/test/interop/go/main.ts",
    },
    conformance: {
      about: "Kubernetes' conformance tests that need no nodes",
      file: "packages/kube-apiserver/test/interop/go/conformance.ts",
    },
    bugs: {
      about: "published bugs of operators, found by faults from seeds",
      file: "packages/kube-apiserver/test/bugs/main.ts",
    },
    suites: {
      about: "tests of other projects, unchanged, on the API server",
      file: "packages/kube-apiserver/test/interop/go/suites.ts",
    },
  },
  soak: {
    "migrate-apiserver": {
      about: "etcd below a kube-apiserver goes to Quorate and back",
      file: "packages/kube-apiserver/test/robustness/migrate.ts",
      isBundled: true,
    },
    operator: {
      about: "a cluster's life under the operator, with pods as processes",
      file: "packages/kube-apiserver/test/operator/soak.ts",
      isBundled: true,
    },
    shadow: {
      about: "a shadow beside members of etcd under kube-apiserver's and random load",
      file: "packages/kube-apiserver/test/interop/shadow-soak.ts",
    },
  },
  robustness: {
    apiserver: {
      about: "API servers that are killed",
      file: "packages/kube-apiserver/test/robustness/main.ts",
    },
  },
};
