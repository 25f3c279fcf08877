/** The suites of `./dev clients suites`. docs/evidence/kubernetes-suites.md has their results. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { go } from "./modules.ts";

export interface Suite {
  readonly name: string;
  readonly module: string;
  /** Packages with tests; each runs by itself. */
  readonly packages: readonly string[];
  /** Where they are in the module, which may have modules in it. */
  readonly directory?: string;
  /** A folder of definitions: the suite is for a server that has them, by KUBECONFIG. */
  readonly definitions?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Go's build tags. */
  readonly tags?: string;
  /**
   * Makes files that the module's own Makefile would make.
   * @returns false where it cannot
   */
  readonly prepare?: (copy: string) => boolean;
}

const GATEWAY = { module: "sigs.k8s.io/gateway-api@v1.4.1", packages: ["./pkg/test/cel"] };

export const SUITES: readonly Suite[] = [
  {
    ...GATEWAY,
    name: "gateway-api",
    definitions: "config/crd/standard",
    env: { CRD_CHANNEL: "standard" },
    tags: "standard",
  },
  {
    ...GATEWAY,
    name: "gateway-api-experimental",
    definitions: "config/crd/experimental",
    env: { CRD_CHANNEL: "experimental" },
    tags: "experimental",
  },
  {
    name: "jobset",
    module: "sigs.k8s.io/jobset@v0.11.0",
    packages: ["./test/integration/webhook"],
  },
  {
    name: "controller-runtime",
    module: "sigs.k8s.io/controller-runtime@v0.24.0",
    packages: [
      "./pkg/builder",
      "./pkg/cache",
      "./pkg/client",
      "./pkg/controller",
      "./pkg/envtest",
      "./pkg/manager",
      "./pkg/webhook",
    ],
  },
  {
    name: "cluster-api",
    module: "sigs.k8s.io/cluster-api@v1.13.6",
    packages: [
      "./internal/webhooks/test",
      "./internal/controllers/cluster",
      "./internal/controllers/clusterclass",
      "./internal/controllers/clusterresourceset",
      "./internal/controllers/extensionconfig",
      "./internal/controllers/machine",
      "./internal/controllers/machinedeployment",
      "./internal/controllers/machinehealthcheck",
      "./internal/controllers/machinepool",
      "./internal/controllers/machineset",
      "./internal/controllers/topology/cluster",
      "./internal/controllers/topology/cluster/patches",
      "./internal/controllers/topology/cluster/structuredmerge",
      "./internal/topology/upgrade",
      "./internal/util/ssa",
      "./controllers/clustercache",
      "./controllers/crdmigrator",
      "./util/patch/test",
      "./util/deprecated/v1beta1/patch",
      "./bootstrap/kubeadm/internal/controllers",
      "./controlplane/kubeadm/internal",
      "./controlplane/kubeadm/internal/controllers",
    ],
  },
  {
    name: "cert-manager",
    module: "github.com/cert-manager/cert-manager@v1.11.5",
    packages: [
      "./test/integration/acme",
      "./test/integration/certificaterequests",
      "./test/integration/certificates",
      "./test/integration/challenges",
      "./test/integration/conversion",
      "./test/integration/ctl",
      "./test/integration/ctl/migrate",
      "./test/integration/issuers",
      "./test/integration/validation",
      "./test/integration/webhook",
    ],
    prepare: certManagerDefinitions,
  },
  {
    name: "flux-ssa",
    module: "github.com/fluxcd/pkg/ssa@v0.78.0",
    packages: [".", "./jsondiff"],
  },
  ...[
    { sample: "cronjob-tutorial", packages: ["./internal/controller", "./internal/webhook/v1"] },
    {
      sample: "multiversion-tutorial",
      packages: ["./internal/controller", "./internal/webhook/v1"],
    },
    { sample: "getting-started", packages: ["./internal/controller"] },
  ].map(({ sample, packages }) => ({
    name: `kubebuilder-${sample}`,
    module: "sigs.k8s.io/kubebuilder/v4@v4.16.0",
    directory: `docs/book/src/${sample}/testdata/project`,
    packages,
    prepare: kubebuilderSamples,
  })),
  {
    name: "kro",
    module: "github.com/kubernetes-sigs/kro@v0.9.4",
    packages: ["./test/integration/suites/core"],
  },
  {
    name: "kyverno",
    module: "github.com/kyverno/kyverno@v1.18.2",
    packages: ["./test/integration/gpol", "./test/integration/mpol", "./test/integration/vpol"],
    tags: "integration",
  },
];

/** Definitions as cert-manager's Makefile makes them: Helm's templates stand in labels alone. */
function certManagerDefinitions(copy: string): boolean {
  const folder = join(copy, "deploy/crds");
  const made = join(copy, "_bin/yaml/templated-crds");
  mkdirSync(made, { recursive: true });
  for (const name of readdirSync(folder).filter((one) => one.endsWith(".yaml"))) {
    const text = readFileSync(join(folder, name), "utf8");
    const to = join(made, `${basename(name, ".yaml")}.templated.yaml`);
    writeFileSync(to, text.replaceAll(/'\{\{.*\}\}'/g, "cert-manager"));
  }
  return true;
}

/** The projects of kubebuilder's book, as its own program makes them; it takes minutes. */
function kubebuilderSamples(copy: string): boolean {
  if (existsSync(join(copy, "docs/book/src/multiversion-tutorial/testdata/project"))) return true;
  // Where the program that makes them looks for kubebuilder.
  const kubebuilder = "/tmp/kubebuilder/bin/kubebuilder";
  return (
    go(["build", "-o", kubebuilder, "."], copy).ok &&
    go(["run", "./hack/docs/generate_samples.go"], copy, { GOFLAGS: "-p=1" }).ok
  );
}
