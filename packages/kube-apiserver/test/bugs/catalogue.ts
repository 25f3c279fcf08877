/** The bugs: what must hold, and what users and faults do until it does not. */
import { setTimeout as delay } from "node:timers/promises";
import { type Any, CLAIMS, type Cluster } from "./cluster.ts";
import type { Operator, Process } from "./operators.ts";

export interface Run {
  readonly cluster: Cluster;
  readonly process: Process;
  /** Kills the operator, and starts it again. */
  restart(): Promise<void>;
  /** Resolves when crashes that faults brought about are over. */
  settle(): Promise<void>;
}

export interface Bug {
  readonly name: string;
  readonly issue: string;
  readonly unfixed: Operator;
  readonly fixed: Operator;
  /** Settings besides seed and agent. */
  readonly chaos: string;
  /** The lease or config map of its leader election. */
  readonly lock: string;
  /** Resolves with what is wrong; undefined: nothing. */
  run(run: Run): Promise<string | undefined>;
}

const RABBIT = "/apis/rabbitmq.com/v1beta1/namespaces/default/rabbitmqclusters";
const RABBIT_SET = "/apis/apps/v1/namespaces/default/statefulsets/rabbit-server";
const RABBIT_CLAIM = `${CLAIMS}/persistence-rabbit-server-0`;
const ZOO = "/apis/zookeeper.pravega.io/v1beta1/namespaces/default/zookeeperclusters";
const ZOO_CLAIM = `${CLAIMS}/data-zoo-0`;

const rabbitmq = (version: string, metrics: string): Operator => ({
  module: "github.com/rabbitmq/cluster-operator",
  version,
  main: ".",
  definition: "config/crd/bases/rabbitmq.com_rabbitmqclusters.yaml",
  args: [`--${metrics}=0`],
  env: (kubeconfig) => ({
    KUBECONFIG: kubeconfig,
    KUBE_CONFIG: kubeconfig,
    OPERATOR_NAMESPACE: "default",
  }),
});

const zookeeper = (
  more: Pick<Operator, "version" | "main" | "definition" | "args" | "modEdit" | "edits">,
): Operator => ({
  module: "github.com/pravega/zookeeper-operator",
  env: (kubeconfig) => ({ KUBECONFIG: kubeconfig, WATCH_NAMESPACE: "default" }),
  ...more,
});

const capacityOf = (claim: Any): string => claim?.spec.resources.requests.storage ?? "none";
const templateOf = (set: Any): Any =>
  set?.spec.volumeClaimTemplates?.find(({ metadata }: Any) => metadata.name === "persistence");

/** A cluster of 10 GiB, which is then to have 15 GiB. */
async function rabbitOf({ cluster, settle }: Run): Promise<void> {
  await cluster.create(RABBIT, {
    apiVersion: "rabbitmq.com/v1beta1",
    kind: "RabbitmqCluster",
    metadata: { name: "rabbit" },
    spec: { replicas: 1, persistence: { storage: "10Gi" } },
  });
  await cluster.until("the volume is there", () => cluster.get(RABBIT_CLAIM));
  await cluster.until("the operator is content", async () => {
    const { conditions = [] } = (await cluster.get(`${RABBIT}/rabbit`))?.status ?? {};
    return conditions.some(
      ({ type, status }: Any) => type === "AllReplicasReady" && status === "True",
    );
  });
  await delay(3000);
  // Users edit what operators do not look at.
  for (let at = 0; at < 8; at++)
    await cluster.patch(`${RABBIT}/rabbit`, { metadata: { annotations: { edit: `${at}` } } });
  await settle();
  await cluster.patch(`${RABBIT}/rabbit`, { spec: { persistence: { storage: "15Gi" } } });
}

/** Whether the stateful set is as the user wants it. */
const isExpanded = async (cluster: Cluster): Promise<boolean> =>
  capacityOf(templateOf(await cluster.get(RABBIT_SET))) === "15Gi";

export const BUGS: readonly Bug[] = [
  {
    name: "rabbitmq-782",
    issue: "https://github.com/rabbitmq/cluster-operator/issues/782",
    unfixed: rabbitmq("v1.5.0", "metrics-addr"),
    fixed: rabbitmq("v1.14.0", "metrics-bind-address"),
    chaos: "crash-after-writes=0.5,resources=statefulsets+persistentvolumeclaims,faults=12",
    lock: "rabbitmq-cluster-operator-leader-election",
    run: async (given) => {
      const { cluster, settle } = given;
      await rabbitOf(given);
      await cluster.until("the stateful set has 15Gi", () => isExpanded(cluster));
      // The operator looks again, and has all the time to finish what it began.
      await settle();
      await given.restart();
      await delay(8000);
      await settle();
      const capacity = capacityOf(await cluster.get(RABBIT_CLAIM));
      return capacity === "15Gi" || !(await isExpanded(cluster))
        ? undefined
        : `the user and the stateful set say 15Gi, and the volume has ${capacity} for ever`;
    },
  },
  {
    name: "rabbitmq-653",
    issue: "https://github.com/rabbitmq/cluster-operator/issues/653",
    unfixed: rabbitmq("v1.5.0", "metrics-addr"),
    fixed: rabbitmq("v1.14.0", "metrics-bind-address"),
    chaos: "stale-lists=0.9,watch-delay=0:8s,resources=rabbitmqclusters",
    lock: "rabbitmq-cluster-operator-leader-election",
    run: async (given) => {
      const { cluster } = given;
      await rabbitOf(given);
      await cluster.until(
        "all has 15Gi",
        async () =>
          (await isExpanded(cluster)) && capacityOf(await cluster.get(RABBIT_CLAIM)) === "15Gi",
      );
      await delay(2000);
      const { uid } = (await cluster.get(RABBIT_SET)).metadata;
      for (let times = 1; times <= 8; times++) {
        await given.restart();
        await cluster.until("the operator runs", async () =>
          /Reconcil|reconcil/.test(given.process.log),
        );
        await delay(6000);
        const now = (await cluster.get(RABBIT_SET))?.metadata.uid;
        if (now !== uid) return `restart ${times}: a stateful set that nobody changed was deleted`;
      }
      return undefined;
    },
  },
  {
    name: "zookeeper-312",
    issue: "https://github.com/pravega/zookeeper-operator/issues/312",
    unfixed: zookeeper({
      version: "v0.2.9",
      main: "./cmd/manager",
      definition: "deploy/crds/zookeeper.pravega.io_zookeeperclusters_crd.yaml",
      args: [],
      // Their old places are gone.
      modEdit: [
        "-replace=vbom.ml/util=github.com/fvbommel/util@v0.0.0-20180919145318-efcd4e0f9787",
        "-replace=bou.ke/monkey=github.com/bouk/monkey@v1.0.1",
      ],
      edits: [
        {
          file: "cmd/manager/main.go",
          from: "manager.Options{NewCache: managerWatchCache}",
          to: 'manager.Options{NewCache: managerWatchCache, MetricsBindAddress: "0"}',
        },
      ],
    }),
    fixed: zookeeper({
      version: "v0.2.15",
      main: ".",
      definition: "config/crd/bases/zookeeper.pravega.io_zookeeperclusters.yaml",
      args: ["--metrics-bind-address=0"],
      // Outside of a pod there is neither a namespace nor a leader.
      edits: [
        {
          file: "main.go",
          from: "operatorNs, err := GetOperatorNamespace()",
          to: 'operatorNs, err := "default", error(nil)',
        },
        {
          file: "main.go",
          from: "err = utils.BecomeLeader(",
          to: "err = func(...interface{}) error { return nil }(utils.BecomeLeader, ",
        },
      ],
    }),
    chaos: "stale-lists=0.9,watch-delay=0:5s,resources=zookeeperclusters",
    lock: "zookeeper-operator-lock",
    run: async ({ cluster, process, restart }) => {
      const zoo = {
        apiVersion: "zookeeper.pravega.io/v1beta1",
        kind: "ZookeeperCluster",
        metadata: { name: "zoo" },
        spec: { replicas: 1, persistence: { reclaimPolicy: "Delete" } },
      };
      const isThere = async () => (await cluster.get(ZOO_CLAIM)) !== undefined;
      await cluster.create(ZOO, zoo);
      await cluster.until("the volume is there", isThere);
      await cluster.remove(`${ZOO}/zoo`);
      await cluster.until("the first cluster is gone", async () => {
        const set = await cluster.get("/apis/apps/v1/namespaces/default/statefulsets/zoo");
        return (
          !(await isThere()) && set === undefined && (await cluster.get(`${ZOO}/zoo`)) === undefined
        );
      });
      await cluster.create(ZOO, zoo);
      await cluster.until("the second one has its volume", isThere);
      const { uid } = (await cluster.get(ZOO_CLAIM)).metadata;
      for (let times = 1; times <= 6; times++) {
        await restart();
        await cluster.until("the operator runs", async () => /Reconciling/.test(process.log));
        await delay(3000);
        const now = (await cluster.get(ZOO_CLAIM))?.metadata;
        if (now?.uid !== uid || now.deletionTimestamp !== undefined)
          return `restart ${times}: the volume of a cluster that runs was deleted`;
      }
      return undefined;
    },
  },
];
