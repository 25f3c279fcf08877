/** Pods and claims under LimitRanges, beside kube-apiserver. */
import type { Answer } from "../comparison.ts";
import { type ApiAccess, type ApiResponse, exchange } from "../rest/exchange.ts";
import { normalised } from "../rest/normalise.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Each has a namespace of its own. */
const LIMITS: Readonly<Record<string, readonly Fields[]>> = {
  filled: [
    {
      type: "Container",
      default: { cpu: "1500m", memory: "1Gi" },
      defaultRequest: { cpu: "0.1" },
    },
  ],
  "from-max": [{ type: "Container", max: { cpu: "2" } }],
  "from-min": [{ type: "Container", min: { cpu: "250m" } }],
  pod: [{ type: "Pod", max: { memory: "1Gi" }, min: { cpu: "300m" } }],
  ratio: [{ type: "Container", maxLimitRequestRatio: { cpu: "2" } }],
  "pod-ratio": [{ type: "Pod", maxLimitRequestRatio: { memory: "1500m" } }],
  claim: [{ type: "PersistentVolumeClaim", min: { storage: "1Gi" }, max: { storage: "2Gi" } }],
};

const asks = (requests?: Fields, limits?: Fields): Fields => ({
  ...(requests ? { requests } : {}),
  ...(limits ? { limits } : {}),
});

/** The resources of the containers, and of those that run before. */
const PODS: readonly (readonly [containers: readonly Fields[], inits?: readonly Fields[]])[] = [
  [[{}]],
  [[{}, {}], [{}]],
  [[asks({ cpu: "1" })]],
  [[asks({ cpu: "100m" }, { cpu: "1" })]],
  [[asks({ cpu: "3" }, { cpu: "3" })]],
  [[asks({ cpu: "1", memory: "600Mi" }, { cpu: "1", memory: "600Mi" })]],
  [
    [
      asks({ cpu: "200m", memory: "600Mi" }, { cpu: "300m", memory: "600Mi" }),
      asks({ cpu: "200m", memory: "600Mi" }, { cpu: "300m", memory: "600Mi" }),
    ],
  ],
  [
    [asks({ cpu: "150m", memory: "100Mi" }, { cpu: "300m", memory: "200Mi" })],
    [
      asks({ cpu: "1", memory: "2Gi" }, { cpu: "1", memory: "2Gi" }),
      {
        ...asks({ cpu: "0.15", memory: "1M" }, { cpu: "0.2", memory: "1M" }),
        staysUp: true,
      },
      asks({ cpu: "50m", memory: "1Mi" }, { cpu: "100m", memory: "2Mi" }),
    ],
  ],
  [[asks({ cpu: "0", memory: "1Mi" }, { cpu: "0", memory: "1Mi" })]],
];
const CLAIMS = ["500Mi", "1Gi", "1.5Gi", "3Gi"];

function containersOf(prefix: string, all: readonly Fields[]): Fields[] {
  return all.map(({ staysUp, ...resources }, i) => ({
    name: `${prefix}${i}`,
    image: "image",
    resources,
    ...(staysUp === true ? { restartPolicy: "Always" } : {}),
  }));
}

/** The same requests to any server, and its answers. */
export async function play(access: ApiAccess): Promise<Answer[]> {
  const answers: Answer[] = [];
  const post = (path: string, body: unknown): Promise<ApiResponse> =>
    exchange(access, { method: "POST", path: `/api/v1${path}`, body });
  for (const [name, limits] of Object.entries(LIMITS)) {
    const root = `/namespaces/${name}`;
    await post("/namespaces", { metadata: { name } });
    await post(`${root}/serviceaccounts`, { metadata: { name: "default" } });
    await post(`${root}/limitranges`, { metadata: { name: "limits" }, spec: { limits } });
    for (const [i, [containers, inits = []]] of PODS.entries()) {
      const spec = {
        containers: containersOf("c", containers),
        initContainers: containersOf("i", inits),
        automountServiceAccountToken: false,
      };
      const response = await post(`${root}/pods`, { metadata: { name: `pod-${i}` }, spec });
      answers.push({ request: `${name} pod ${i}`, response: judged(response) });
    }
    for (const storage of name === "claim" ? CLAIMS : []) {
      const resources = { requests: { storage } };
      const spec = { accessModes: ["ReadWriteOnce"], resources };
      const metadata = { name: `claim-${storage.toLowerCase()}` };
      const response = await post(`${root}/persistentvolumeclaims`, { metadata, spec });
      answers.push({ request: `${name} ${storage}`, response: judged(response) });
    }
  }
  // As they are stored: without what is undefined.
  return JSON.parse(JSON.stringify(answers)) as Answer[];
}

/** What LimitRanger decides: the refusal, with its parts in order; else what it has set. */
function judged(response: ApiResponse): ApiResponse {
  const { status, body } = normalised(response);
  if (status !== 201) {
    const { message } = body as { readonly message: string };
    const [before, list] = message.split(/: \[(?=.*\]$)/);
    const parts =
      list === undefined
        ? []
        : list
            .slice(0, -1)
            .split(/, (?=m|\w+ max)/)
            .sort();
    return { status, body: [before, ...parts] };
  }
  const { metadata, spec } = body as {
    readonly metadata: { readonly annotations?: Fields };
    readonly spec: { readonly [name: string]: readonly { readonly resources: Fields }[] };
  };
  const resourcesOf = (field: string): unknown =>
    Array.isArray(spec[field]) ? spec[field].map(({ resources }) => resources) : undefined;
  const set = metadata.annotations?.["kubernetes.io/limit-ranger"];
  return { status, body: [set, resourcesOf("containers"), resourcesOf("initContainers")] };
}
