/** Services that are given addresses and ports, beside kube-apiserver. */
import type { Answer } from "../comparison.ts";
import { type ApiAccess, type ApiResponse, exchange } from "../rest/exchange.ts";
import { normalised } from "../rest/normalise.ts";

type Fields = Readonly<Record<string, unknown>>;

const PORTS = [{ port: 80 }];
const BOTH = [
  { name: "udp", port: 53, protocol: "UDP" },
  { name: "tcp", port: 53, protocol: "TCP" },
];
const LOCAL = { type: "LoadBalancer", externalTrafficPolicy: "Local" };
const NONE: Fields = { clusterIP: null, clusterIPs: null, ipFamilies: null, ipFamilyPolicy: null };

/** A name, the spec, and merge patches of the spec that follow; null deletes. */
const SERVICES: readonly (readonly [name: string, spec: Fields, ...patches: readonly Fields[]])[] =
  [
    ["plain", {}, { selector: { a: "c" } }, { clusterIP: "10.0.0.7" }, { type: "NodePort" }],
    ["named", { clusterIP: "10.0.0.5" }, NONE, { clusterIP: "None" }, { clusterIP: "" }],
    ["again", { clusterIP: "10.0.0.5" }],
    ["first", { clusterIP: "10.0.0.1" }],
    ["network", { clusterIP: "10.0.0.0" }],
    ["broadcast", { clusterIP: "10.0.0.255" }],
    ["outside", { clusterIP: "10.9.0.9" }],
    ["other-family", { clusterIP: "fd00::1" }],
    ["wants-six", { ipFamilies: ["IPv6"] }],
    ["wants-both", { ipFamilies: ["IPv4", "IPv6"] }],
    ["prefers", { ipFamilyPolicy: "PreferDualStack" }, { ipFamilyPolicy: "SingleStack" }],
    ["prefers-both", { ipFamilyPolicy: "PreferDualStack", ipFamilies: ["IPv4", "IPv6"] }],
    ["requires", { ipFamilyPolicy: "RequireDualStack" }],
    ["single", { ipFamilyPolicy: "SingleStack" }, { ipFamilyPolicy: "RequireDualStack" }],
    ["headless", { clusterIP: "None" }, { clusterIP: "10.0.0.9" }],
    ["headless-six", { clusterIP: "None", ipFamilies: ["IPv6"] }],
    ["headless-both", { clusterIP: "None", ipFamilyPolicy: "RequireDualStack" }],
    ["alone", { clusterIP: "None", selector: null }],
    ["alone-single", { clusterIP: "None", selector: null, ipFamilyPolicy: "SingleStack" }],
    ["alone-six", { clusterIP: "None", selector: null, ipFamilies: ["IPv6"] }],
    [
      "named-outside",
      { type: "ExternalName", externalName: "a.b" },
      { type: "ClusterIP", externalName: null },
      { type: "ExternalName", externalName: "a.b" },
    ],
    ["node", { type: "NodePort" }, { type: "ClusterIP" }, { type: "LoadBalancer" }],
    ["node-named", { type: "NodePort", ports: [{ port: 80, nodePort: 30_005 }] }],
    ["node-taken", { type: "NodePort", ports: [{ port: 80, nodePort: 30_005 }] }],
    ["node-low", { type: "NodePort", ports: [{ port: 80, nodePort: 80 }] }],
    [
      "node-both",
      { type: "NodePort", ports: BOTH },
      { ports: [BOTH[0], { ...BOTH[1], nodePort: 30_006 }] },
      { ports: [{ ...BOTH[1], nodePort: 30_006 }] },
      { ports: [{ ...BOTH[1], nodePort: 30_005 }] },
      { ports: [...BOTH, { name: "more", port: 80, nodePort: 30_007 }] },
    ],
    [
      "node-shares",
      { type: "NodePort", ports: [{ ...BOTH[0], nodePort: 30_053 }, BOTH[1] ?? {}] },
      { type: "ExternalName", externalName: "a.b" },
    ],
    ["node-free", { type: "NodePort", ports: [{ port: 80, nodePort: 30_053 }] }],
    [
      "balanced",
      { type: "LoadBalancer" },
      { externalTrafficPolicy: "Local" },
      { type: "NodePort" },
    ],
    ["balanced-alone", { type: "LoadBalancer", allocateLoadBalancerNodePorts: false }],
    [
      "balanced-some",
      {
        type: "LoadBalancer",
        allocateLoadBalancerNodePorts: false,
        ports: [
          { name: "a", port: 80, nodePort: 30_008 },
          { name: "b", port: 81 },
        ],
      },
      { allocateLoadBalancerNodePorts: true },
    ],
    ["health", { ...LOCAL, healthCheckNodePort: 30_009 }, { healthCheckNodePort: 30_010 }],
    ["health-taken", { ...LOCAL, healthCheckNodePort: 30_009 }],
    ["health-low", { ...LOCAL, healthCheckNodePort: 80 }],
    ["health-any", LOCAL, { externalTrafficPolicy: "Cluster" }, { externalTrafficPolicy: "Local" }],
  ];

/** The same requests to any server, and its answers. */
export async function play(access: ApiAccess): Promise<Answer[]> {
  const answers: Answer[] = [];
  const root = "/api/v1/namespaces/default/services";
  const send = async (method: string, path: string, body?: unknown): Promise<ApiResponse> => {
    const headers = { "content-type": "application/merge-patch+json" };
    const patch = method === "PATCH" ? { headers } : {};
    const response = await exchange(access, { method, path, body, ...patch });
    const request = `${method} ${path} ${JSON.stringify(body)}`;
    answers.push({ request, response: judged(response) });
    return response;
  };
  for (const [name, own, ...patches] of SERVICES) {
    const spec = { ports: PORTS, selector: { a: "b" }, ...own };
    const service = { metadata: { name }, spec };
    await send("POST", `${root}?dryRun=All`, service);
    await send("POST", root, service);
    for (const change of patches) {
      await send("PATCH", `${root}/${name}?dryRun=All`, { spec: change });
      await send("PATCH", `${root}/${name}`, { spec: change });
    }
  }
  // What is deleted, or refused, gives its address and its ports back.
  await send("DELETE", `${root}/named`);
  await send("DELETE", `${root}/node-named`);
  const again = { ports: [{ port: 80, nodePort: 30_005 }], clusterIP: "10.0.0.5" };
  const bad = { ...again, type: "NodePort", sessionAffinity: "Foo" };
  await send("POST", root, { metadata: { name: "bad" }, spec: bad });
  const good = { ...again, type: "NodePort" };
  await send("POST", root, { metadata: { name: "reuses" }, spec: good });
  await send("GET", "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.5");
  await send("DELETE", `${root}/reuses`);
  await send("GET", "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.5");
  await send("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes");
  // As they are stored: without what is undefined.
  return JSON.parse(JSON.stringify(answers)) as Answer[];
}

/** Addresses and ports that nobody asked for are random, and above those that tests ask for. */
const shown = (text: string): string =>
  text
    .replace(/10\.0\.0\.(1[7-9]|[2-9]\d|1\d\d|2[0-4]\d|25[0-4])\b/g, "ADDRESS")
    .replace(/\b3(0(0(8[6-9]|9\d)|[1-9]\d\d)|1\d\d\d|2[0-6]\d\d|27[0-5]\d|276[0-7])\b/g, "39999");

function judged(response: ApiResponse): ApiResponse {
  const { status, body } = normalised(response);
  const { metadata, spec, message, details, status: state } = body as Fields;
  const labels = (metadata as { readonly labels?: unknown } | undefined)?.labels;
  const conditions = (
    state as { readonly conditions?: readonly Fields[] } | undefined
  )?.conditions?.map(({ lastTransitionTime: _, ...rest }) => rest);
  const said = status >= 400 ? { message, details } : { labels, spec, conditions };
  return { status, body: JSON.parse(shown(JSON.stringify(said))) };
}
