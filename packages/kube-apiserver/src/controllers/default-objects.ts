/**
 * The FlowSchemas, PriorityLevelConfigurations and PriorityClasses that a server makes when it
 * starts, and looks after each minute (apiserver: pkg/apis/flowcontrol/bootstrap; kubernetes:
 * pkg/registry/flowcontrol/ensurer, pkg/registry/scheduling/rest).
 *
 *     mandatory   always as they are here
 *     suggested   as they are here, unless their annotation autoupdate-spec is "false"; one without
 *                 the annotation until its spec was changed
 *
 * The levels by which this server itself serves are src/server/priority-levels.ts.
 */
import { type KubeObject, metaTime, semanticEqual } from "@quorate/kube-storage";
import {
  type Change,
  isAlreadyExists,
  isConflict,
  isNotFound,
  type LocalClient,
  type ResourceRef,
} from "../informers/local-client.ts";

const FLOW_GROUP = "flowcontrol.apiserver.k8s.io";
const SCHEDULING_GROUP = "scheduling.k8s.io";
const AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec";
const LEVELS = ref(FLOW_GROUP, "prioritylevelconfigurations");
const SCHEMAS = ref(FLOW_GROUP, "flowschemas");
const CLASSES = ref(SCHEDULING_GROUP, "priorityclasses");
const MANDATORY = new Set(["exempt", "catch-all"]);

type Fields = Readonly<Record<string, unknown>>;

function ref(group: string, resource: string): ResourceRef {
  return { group, version: "v1", resource };
}

function flowObject(kind: string, name: string, spec: Fields): KubeObject {
  const metadata = { name, annotations: { [AUTOUPDATE]: "true" } };
  return { apiVersion: `${FLOW_GROUP}/v1`, kind, metadata, spec };
}

/** Name, shares, percent that may be lent; then queues and hand size, where requests wait. */
const LIMITED = [
  ["catch-all", 5, 0, 0, 0],
  ["system", 30, 33, 64, 6],
  ["node-high", 40, 25, 64, 6],
  ["leader-election", 10, 0, 16, 4],
  ["workload-high", 40, 50, 128, 6],
  ["workload-low", 100, 90, 128, 6],
  ["global-default", 20, 50, 128, 6],
] as const;
const QUEUE_LENGTH = 50;

function levels(): KubeObject[] {
  const limited = LIMITED.map(([name, shares, lendablePercent, queues, handSize]) => {
    const queuing = { queues, handSize, queueLengthLimit: QUEUE_LENGTH };
    const limitResponse = queues === 0 ? { type: "Reject" } : { type: "Queue", queuing };
    return flowObject("PriorityLevelConfiguration", name, {
      type: "Limited",
      limited: { nominalConcurrencyShares: shares, lendablePercent, limitResponse },
    });
  });
  const exempt = { nominalConcurrencyShares: 0, lendablePercent: 0 };
  const spec = { type: "Exempt", exempt };
  return [flowObject("PriorityLevelConfiguration", "exempt", spec), ...limited];
}

const groups = (...names: string[]): Fields[] =>
  names.map((name) => ({ kind: "Group", group: { name } }));
const users = (...names: string[]): Fields[] =>
  names.map((name) => ({ kind: "User", user: { name } }));
const SYSTEM_ACCOUNTS = [
  { kind: "ServiceAccount", serviceAccount: { name: "*", namespace: "kube-system" } },
];
const EVERYBODY = groups("system:unauthenticated", "system:authenticated");

function resources(
  verbs: readonly string[],
  group: string,
  names: readonly string[],
  clusterScope: boolean,
): Fields {
  const scope = clusterScope ? { clusterScope } : {};
  return { verbs, apiGroups: [group], resources: names, namespaces: ["*"], ...scope };
}

const EVERYTHING = {
  resourceRules: [resources(["*"], "*", ["*"], true)],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
};
const LEASES = "coordination.k8s.io";

type SchemaRow = readonly [
  name: string,
  level: string,
  precedence: number,
  by: "" | "User" | "Namespace",
  subjects: readonly Fields[],
  rules: Fields,
];

const SCHEMA_ROWS: readonly SchemaRow[] = [
  ["exempt", "exempt", 1, "", groups("system:masters"), EVERYTHING],
  [
    "probes",
    "exempt",
    2,
    "",
    EVERYBODY,
    { nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/healthz", "/readyz", "/livez"] }] },
  ],
  [
    "system-leader-election",
    "leader-election",
    100,
    "User",
    [...users("system:kube-controller-manager", "system:kube-scheduler"), ...SYSTEM_ACCOUNTS],
    { resourceRules: [resources(["get", "create", "update"], LEASES, ["leases"], false)] },
  ],
  [
    "system-node-high",
    "node-high",
    400,
    "User",
    groups("system:nodes"),
    {
      resourceRules: [
        resources(["*"], "", ["nodes", "nodes/status"], true),
        resources(["*"], LEASES, ["leases"], false),
      ],
    },
  ],
  ["system-nodes", "system", 500, "User", groups("system:nodes"), EVERYTHING],
  [
    "kube-controller-manager",
    "workload-high",
    800,
    "Namespace",
    users("system:kube-controller-manager"),
    EVERYTHING,
  ],
  ["kube-scheduler", "workload-high", 800, "Namespace", users("system:kube-scheduler"), EVERYTHING],
  ["kube-system-service-accounts", "workload-high", 900, "Namespace", SYSTEM_ACCOUNTS, EVERYTHING],
  ["service-accounts", "workload-low", 9000, "User", groups("system:serviceaccounts"), EVERYTHING],
  ["global-default", "global-default", 9900, "User", EVERYBODY, EVERYTHING],
  ["catch-all", "catch-all", 10_000, "User", EVERYBODY, EVERYTHING],
];

function schemas(): KubeObject[] {
  return SCHEMA_ROWS.map(([name, level, matchingPrecedence, by, subjects, rules]) =>
    flowObject("FlowSchema", name, {
      priorityLevelConfiguration: { name: level },
      matchingPrecedence,
      ...(by === "" ? {} : { distinguisherMethod: { type: `By${by}` } }),
      rules: [{ subjects, ...rules }],
    }),
  );
}

const CRITICAL = 2_000_000_000;

function priorityClasses(): KubeObject[] {
  const made = (name: string, value: number, description: string): KubeObject => ({
    apiVersion: `${SCHEDULING_GROUP}/v1`,
    kind: "PriorityClass",
    metadata: { name },
    value,
    description,
  });
  return [
    made(
      "system-node-critical",
      CRITICAL + 1000,
      "Used for system critical pods that must not be moved from their current node.",
    ),
    made(
      "system-cluster-critical",
      CRITICAL,
      "Used for system critical pods that must run in the cluster, but can be moved to another " +
        "node if necessary.",
    ),
  ];
}

/** Creates what is missing, and mends what is to be mended. Rejects with ApiError. */
export async function ensureDefaultObjects(client: LocalClient, wallMs: number): Promise<void> {
  await Promise.all([
    ensureAll(client, LEVELS, levels(), revised),
    ensureAll(client, SCHEMAS, schemas(), revised),
    ensureAll(client, CLASSES, priorityClasses(), () => undefined),
  ]);
  await Promise.all(schemas().map((schema) => ensureStatus(client, schema, wallMs)));
}

type Revise = (present: KubeObject, wanted: KubeObject) => KubeObject | undefined;

async function ensureAll(
  client: LocalClient,
  of: ResourceRef,
  defaults: readonly KubeObject[],
  revise: Revise,
): Promise<void> {
  await Promise.all(
    defaults.map((wanted) => ensured(client, of, wanted, (present) => revise(present, wanted))),
  );
}

async function ensured(
  client: LocalClient,
  of: ResourceRef,
  wanted: KubeObject,
  change: Change,
): Promise<void> {
  const { name = "" } = wanted.metadata;
  const present = await client.get(of, "", name);
  try {
    if (present === undefined) await client.create(of, "", wanted);
    else if (change(present) !== undefined) await client.update(of, "", name, change);
  } catch (error) {
    // Another server writes the same, or somebody deletes it; the next minute sees what is there.
    if (!isAlreadyExists(error) && !isConflict(error) && !isNotFound(error)) throw error;
  }
}

/** The object with the spec of `wanted` and the right annotation; undefined where it has both. */
function revised(present: KubeObject, wanted: KubeObject): KubeObject | undefined {
  const { name = "", annotations, generation } = present.metadata;
  const mark = annotations?.[AUTOUPDATE];
  const isMarked = mark === "true" || mark === "false";
  const isOurs = MANDATORY.has(name) || (isMarked ? mark === "true" : generation === 1);
  const marked = { ...annotations, [AUTOUPDATE]: String(isOurs) };
  const next = {
    ...present,
    metadata: { ...present.metadata, annotations: marked },
    ...(isOurs ? { spec: wanted["spec"] } : {}),
  };
  return semanticEqual(next, present) ? undefined : next;
}

/** Says that the level of a FlowSchema is there, where nothing is said of it yet. */
async function ensureStatus(
  client: LocalClient,
  wanted: KubeObject,
  wallMs: number,
): Promise<void> {
  const { name = "" } = wanted.metadata;
  const conditionsOf = (object: KubeObject | undefined): readonly unknown[] =>
    (object?.["status"] as { conditions?: readonly unknown[] } | undefined)?.conditions ?? [];
  const present = await client.get(SCHEMAS, "", name);
  if (present === undefined || conditionsOf(present).length > 0) return;
  const change = (schema: KubeObject): KubeObject | undefined => {
    const spec = schema["spec"] as { priorityLevelConfiguration?: { name?: string } };
    const level = JSON.stringify(spec.priorityLevelConfiguration?.name ?? "");
    const condition = {
      type: "Dangling",
      status: "False",
      lastTransitionTime: metaTime(wallMs),
      reason: "Found",
      message:
        `This FlowSchema references the PriorityLevelConfiguration object named ${level} and ` +
        "it exists",
    };
    if (conditionsOf(schema).length > 0) return undefined;
    return { ...schema, status: { conditions: [condition] } };
  };
  try {
    await client.update({ ...SCHEMAS, subresource: "status" }, "", name, change);
  } catch (error) {
    if (!isConflict(error) && !isNotFound(error)) throw error;
  }
}
