/** The definitions of the four kinds, with OpenAPI schemas and CEL rules. */
import { GROUP, type KubeObject, RESOURCES, VERSION } from "./kube.ts";

type Schema = Readonly<Record<string, unknown>>;

const text = (description: string, more: Schema = {}): Schema => ({
  type: "string",
  description,
  ...more,
});
const whole = (description: string, more: Schema = {}): Schema => ({
  type: "integer",
  description,
  ...more,
});
const record = (description: string, properties: Schema, more: Schema = {}): Schema => ({
  type: "object",
  description,
  properties,
  ...more,
});
const texts = (description: string): Schema => ({
  type: "object",
  description,
  maxProperties: 64,
  additionalProperties: { type: "string", maxLength: 1024 },
});
const asInPods = (type: "object" | "array"): Schema =>
  type === "object"
    ? { type, "x-kubernetes-preserve-unknown-fields": true }
    : { type, items: { type: "object", "x-kubernetes-preserve-unknown-fields": true } };

const NAME = { minLength: 1, maxLength: 40, pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$" };
const PATH = { minLength: 1, maxLength: 256, pattern: "^[A-Za-z0-9._/-]+$" };
const DURATION = { pattern: "^([0-9]+(s|m|h))+$", maxLength: 20 };
const rule = (rule: string, message: string): Schema => ({ rule, message });

/** Flags that the operator sets itself. */
const OWN_FLAGS =
  "^(name|data-dir|wal-dir|listen-.*|advertise-.*|initial-.*|cert-file|key-file|trusted-ca-file|" +
  "client-cert-auth|peer-.*|force-new-cluster|discovery.*|auto-promote)$";

const POD = record("parts of the members' pods", {
  labels: texts("labels"),
  annotations: texts("annotations"),
  resources: asInPods("object"),
  nodeSelector: texts("node labels"),
  tolerations: asInPods("array"),
  affinity: asInPods("object"),
  topologySpreadConstraints: asInPods("array"),
  priorityClassName: text("priority class"),
  serviceAccountName: text("service account"),
  imagePullSecrets: asInPods("array"),
  securityContext: asInPods("object"),
});

const clusterSpec = (more: Schema = {}): Schema =>
  record(
    "the cluster that is wanted",
    {
      size: whole("members: 1, 3, 5 or 7; 0: none runs, and their data are kept", {
        enum: [0, 1, 3, 5, 7],
      }),
      image: text("image of the members", { minLength: 1, maxLength: 512 }),
      storage: record(
        "the members' claims",
        {
          size: text("request of each claim; it may grow where the class allows it", {
            maxLength: 32,
            pattern: "^[0-9]+([.][0-9]+)?([KMGTPE]i|[kMGTPE])?$",
          }),
          storageClassName: text("storage class"),
          onDelete: text("what becomes of the claims with the cluster", {
            enum: ["Keep", "Delete"],
            default: "Keep",
          }),
        },
        { required: ["size"] },
      ),
      flags: {
        ...texts("further flags of the members, without dashes"),
        "x-kubernetes-validations": [
          rule(
            `!self.exists(f, f.matches('${OWN_FLAGS}'))`,
            "the operator sets one of these flags",
          ),
        ],
      },
      pod: POD,
      zones: {
        type: "array",
        description: "zones of nodes, over which members are spread; each stays where its disk is",
        maxItems: 16,
        "x-kubernetes-list-type": "set",
        items: { type: "string", minLength: 1, maxLength: 63 },
      },
      monitor: record("the PodMonitor, where the kind is served", {
        labels: texts("labels, by which a Prometheus selects it"),
      }),
      recovery: text("whether a lost quorum is recovered without being asked", {
        enum: ["auto", "manual"],
        default: "manual",
      }),
      replaceAfterSeconds: whole("how long a member may be away before it is replaced", {
        minimum: 5,
        maximum: 86_400,
        default: 300,
      }),
      certificates: record(
        "certificates, of the cluster's own authority or of an issuer",
        {
          validDays: whole("how long one is valid", { minimum: 1, maximum: 3650, default: 90 }),
          issuerRef: record(
            "issuer of cert-manager, in place of an authority of the cluster's own",
            {
              name: text("of the issuer", { minLength: 1 }),
              kind: text("Issuer or ClusterIssuer", { default: "Issuer" }),
              group: text("of the issuer's kind", { default: "cert-manager.io" }),
            },
            { required: ["name"] },
          ),
        },
        {
          default: {},
          "x-kubernetes-validations": [
            rule(
              "has(self.issuerRef) == has(oldSelf.issuerRef)",
              "a cluster keeps who makes its certificates: members trust no other ones",
            ),
          ],
        },
      ),
      users: { type: "boolean", default: false, description: "whether clients need a user" },
    },
    { required: ["size", "image", "storage"], ...more },
  );

const CONDITIONS: Schema = {
  type: "array",
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["type"],
  items: record(
    "metav1.Condition",
    {
      type: text("what it is about"),
      status: text("whether it holds", { enum: ["True", "False", "Unknown"] }),
      reason: text("why, in a word"),
      message: text("why"),
      observedGeneration: whole("of the object"),
      lastTransitionTime: text("since when", { format: "date-time" }),
    },
    { required: ["type", "status"] },
  ),
};

const statusOf = (properties: Schema): Schema =>
  record("what the operator found", {
    observedGeneration: whole("generation that the operator has seen"),
    conditions: CONDITIONS,
    ...properties,
  });

const CLUSTER_STATUS = statusOf({
  clusterID: text("id of the cluster, hexadecimal"),
  members: whole("members of the cluster"),
  readyMembers: whole("voters that are ready"),
  leader: text("name of the leader"),
  version: text("lowest version of all members"),
  selector: text("of the members' pods"),
  lastNumber: whole("highest number in the name of a member so far"),
  memberList: {
    type: "array",
    items: record("a member", {
      name: text("of member, pod and claim"),
      id: text("hexadecimal"),
      role: text("leader, voter or learner"),
      ready: { type: "boolean" },
      version: text("of the program"),
    }),
  },
  recovery: record("a lost quorum that is being recovered", {
    survivor: text("the member whose data the cluster continues with"),
    forced: { type: "boolean" },
  }),
  restored: text("uid of the QuorateRestore that was done last"),
  history: whole("how often the keys went back to an older state"),
  certificatesEnd: text("when the first certificate ends"),
});

const mirror = (description: string): Schema =>
  record(
    description,
    {
      url: text("s3://bucket/prefix", {
        maxLength: 512,
        pattern: "^s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[A-Za-z0-9._/-]*)?$",
      }),
      endpoint: text("of a store that is not Amazon's", {
        maxLength: 512,
        pattern: "^https?://[A-Za-z0-9._:/\\[\\]-]+$",
      }),
      region: text("of the store", { maxLength: 64, pattern: "^[a-z0-9-]+$" }),
      secret: text("secret with credentials (a file of AWS), and encryption-key if wanted", {
        minLength: 1,
      }),
    },
    { required: ["url", "secret"] },
  );

const BACKUP_SPEC = record(
  "a backup, continuous or scheduled",
  {
    cluster: text("QuorateCluster of this namespace", NAME),
    claim: text("claim that the backup is kept in", { minLength: 1 }),
    path: text("directory in the claim", { ...PATH, default: "backup" }),
    continuous: record("every change is recorded", {
      baseInterval: text("between base snapshots", { ...DURATION, default: "24h" }),
      retain: text("how far back any moment can be rebuilt", { ...DURATION, default: "168h" }),
      mirror: mirror("object store that the directory is copied to while it grows"),
    }),
    scheduled: record(
      "snapshots",
      {
        every: text("between snapshots", DURATION),
        keep: whole("how many are kept", { minimum: 1, maximum: 1000, default: 7 }),
      },
      { required: ["every"] },
    ),
    restoreTest: record("a member is filled from it, and its keys compared with the cluster's", {
      every: text("between tests", { ...DURATION, default: "168h" }),
    }),
  },
  {
    required: ["cluster", "claim"],
    "x-kubernetes-validations": [
      rule("has(self.continuous) != has(self.scheduled)", "either continuous or scheduled"),
      rule("!self.path.contains('..')", "path must stay in the claim"),
    ],
  },
);

const RESTORE_SPEC = record(
  "a restore, into a new cluster or in place",
  {
    cluster: text("QuorateCluster that gets the keys", NAME),
    create: clusterSpec(),
    from: record(
      "the backup",
      {
        claim: text("claim that has the backup", { minLength: 1 }),
        path: text("snapshot, directory of snapshots, or continuous backup", PATH),
        at: text("revision or time of a continuous backup", {
          maxLength: 40,
          pattern: "^[0-9TZ:.+-]+$",
        }),
        mirror: mirror("object store that the directory is fetched from first"),
      },
      {
        required: ["claim", "path"],
        "x-kubernetes-validations": [
          rule("!self.path.contains('..')", "path must stay in the claim"),
        ],
      },
    ),
    bumpRevision: whole("added to the revision, so that clients notice", {
      minimum: 0,
      maximum: 1_000_000_000_000,
      default: 1_000_000_000,
    }),
  },
  {
    required: ["cluster", "from"],
    "x-kubernetes-validations": [rule("self == oldSelf", "a restore is not changed; make another")],
  },
);

const USER_SPEC = record(
  "a user of a cluster, with a role of its own",
  {
    cluster: text("QuorateCluster of this namespace", NAME),
    username: text("default: the object's name", { minLength: 1, maxLength: 128 }),
    passwordSecret: record(
      "where the password is",
      {
        name: text("of the secret", { minLength: 1 }),
        key: text("in it", { default: "password" }),
      },
      { required: ["name"] },
    ),
    permissions: {
      type: "array",
      maxItems: 256,
      default: [],
      items: record(
        "what the user may do",
        {
          access: text("how", { enum: ["read", "write", "readwrite"] }),
          key: text("key, or beginning of keys; empty with prefix: all", { maxLength: 1024 }),
          prefix: { type: "boolean", default: false },
        },
        {
          required: ["access", "key"],
          "x-kubernetes-validations": [
            rule("self.key != '' || (has(self.prefix) && self.prefix)", "a key, or all by prefix"),
          ],
        },
      ),
    },
  },
  {
    required: ["cluster", "passwordSecret"],
    "x-kubernetes-validations": [
      rule("!has(self.username) || self.username != 'root'", "root is the operator's"),
      rule("has(self.username) == has(oldSelf.username)", "a user is not renamed"),
      rule("!has(self.username) || self.username == oldSelf.username", "a user is not renamed"),
      rule("self.cluster == oldSelf.cluster", "a user stays in its cluster"),
    ],
  },
);

type Column = readonly [name: string, type: string, jsonPath: string];

function definition(
  kind: "QuorateCluster" | "QuorateBackup" | "QuorateRestore" | "QuorateUser",
  shortName: string,
  spec: Schema,
  status: Schema,
  columns: readonly Column[],
  scale: object | undefined,
  nameRule: Schema,
): KubeObject {
  const { plural } = RESOURCES[kind];
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: "Namespaced",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {}, ...(scale === undefined ? {} : { scale }) },
          additionalPrinterColumns: columns.map(([name, type, jsonPath]) => ({
            name,
            type,
            jsonPath,
          })),
          schema: {
            openAPIV3Schema: record(kind, { spec, status }, { required: ["spec"], ...nameRule }),
          },
        },
      ],
    },
  };
}

const READY: Column = ["Ready", "string", '.status.conditions[?(@.type=="Ready")].status'];
const WHY: Column = ["Reason", "string", '.status.conditions[?(@.type=="Ready")].reason'];
const AGE: Column = ["Age", "date", ".metadata.creationTimestamp"];

/** All four, as kubectl applies them. */
export function definitions(): KubeObject[] {
  const short = {
    "x-kubernetes-validations": [
      rule("self.metadata.name.size() <= 40", "the name is at most 40 characters, for pods' names"),
    ],
  };
  const fixedStorage = {
    "x-kubernetes-validations": [
      rule(
        "has(self.storage.storageClassName) == has(oldSelf.storage.storageClassName) && " +
          "(!has(self.storage.storageClassName) || " +
          "self.storage.storageClassName == oldSelf.storage.storageClassName)",
        "the claims of a cluster keep their class",
      ),
    ],
  };
  return [
    definition(
      "QuorateCluster",
      "qc",
      clusterSpec(fixedStorage),
      CLUSTER_STATUS,
      [
        ["Size", "integer", ".spec.size"],
        ["Members", "integer", ".status.readyMembers"],
        ["Leader", "string", ".status.leader"],
        ["Version", "string", ".status.version"],
        READY,
        WHY,
        AGE,
      ],
      {
        specReplicasPath: ".spec.size",
        statusReplicasPath: ".status.readyMembers",
        labelSelectorPath: ".status.selector",
      },
      short,
    ),
    definition(
      "QuorateBackup",
      "qb",
      BACKUP_SPEC,
      statusOf({
        lastStart: text("of the last snapshot", { format: "date-time" }),
        lastSuccess: text("of the last snapshot", { format: "date-time" }),
        lastTest: text("of the last restore test, when it began", { format: "date-time" }),
        directory: text("where the cluster's present history is recorded, in the claim"),
        history: whole("that of the cluster when the directory was begun"),
      }),
      [
        ["Cluster", "string", ".spec.cluster"],
        ["Last", "date", ".status.lastSuccess"],
        ["Directory", "string", ".status.directory"],
        ["Restorable", "string", '.status.conditions[?(@.type=="Restorable")].status'],
        READY,
        WHY,
        AGE,
      ],
      undefined,
      short,
    ),
    definition(
      "QuorateRestore",
      "qr",
      RESTORE_SPEC,
      statusOf({}),
      [["Cluster", "string", ".spec.cluster"], READY, WHY, AGE],
      undefined,
      short,
    ),
    definition(
      "QuorateUser",
      "qu",
      USER_SPEC,
      statusOf({ passwordVersion: text("of the secret whose password is set") }),
      [["Cluster", "string", ".spec.cluster"], READY, WHY, AGE],
      undefined,
      short,
    ),
  ];
}
