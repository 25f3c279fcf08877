/** Pods and the service accounts that they run as, beside kube-apiserver. */
import type { Answer } from "../comparison.ts";
import { type ApiAccess, type ApiRequest, type ApiResponse, exchange } from "../rest/exchange.ts";
import { normalised } from "../rest/normalise.ts";

type Fields = Readonly<Record<string, unknown>>;

const ENFORCED = { "kubernetes.io/enforce-mountable-secrets": "true" };
const ACCOUNTS: readonly Fields[] = [
  { metadata: { name: "default" } },
  { metadata: { name: "plain" }, automountServiceAccountToken: false },
  { metadata: { name: "pulls" }, imagePullSecrets: [{ name: "a" }, { name: "b" }] },
  {
    metadata: { name: "strict", annotations: ENFORCED },
    secrets: [{ name: "own" }],
    imagePullSecrets: [{ name: "a" }],
  },
];
const TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";

const container = (more: Fields = {}): Fields => ({ name: "c", image: "i", ...more });
const secretVariable = (name: string): Fields => ({
  env: [{ name: "V", valueFrom: { secretKeyRef: { name, key: "k" } } }],
});
const secretSource = (name: string): Fields => ({ envFrom: [{ secretRef: { name } }] });
const volume = (source: Fields): Fields => ({ volumes: [{ name: "v", ...source }] });
const token = { projected: { sources: [{ serviceAccountToken: { path: "t" } }] } };

/** The spec of a pod, without or with other containers. */
const SPECS: readonly Fields[] = [
  {},
  { serviceAccountName: "missing" },
  { serviceAccount: "plain" },
  { serviceAccountName: "plain", automountServiceAccountToken: true },
  { automountServiceAccountToken: false },
  { serviceAccountName: "pulls" },
  { serviceAccountName: "pulls", imagePullSecrets: [{ name: "c" }] },
  { initContainers: [container({ name: "first" })] },
  {
    containers: [container({ volumeMounts: [{ name: "v", mountPath: TOKEN_PATH }] })],
    ...volume({ emptyDir: {} }),
  },
  { volumes: [{ name: "kube-api-access-own", ...token }] },
  volume(token),
  { serviceAccountName: "strict" },
  { serviceAccountName: "strict", ...volume({ secret: { secretName: "own" } }) },
  { serviceAccountName: "strict", ...volume({ secret: { secretName: "other" } }) },
  { serviceAccountName: "strict", containers: [container(secretVariable("other"))] },
  { serviceAccountName: "strict", containers: [container(secretSource("other"))] },
  {
    serviceAccountName: "strict",
    initContainers: [container({ name: "first", ...secretVariable("other") })],
  },
  {
    serviceAccountName: "strict",
    initContainers: [container({ name: "first", ...secretSource("other") })],
  },
  { serviceAccountName: "strict", imagePullSecrets: [{ name: "b" }] },
];
/** Of pods that stand for one in a node's files. */
const MIRRORS: readonly Fields[] = [
  {},
  { serviceAccountName: "plain" },
  { imagePullSecrets: [{ name: "a" }] },
  { containers: [container(secretVariable("s"))] },
  { containers: [container(secretSource("s"))] },
  volume({ secret: { secretName: "s" } }),
  volume({ projected: { sources: [{ secret: { name: "s" } }] } }),
  volume({ csi: { driver: "d", nodePublishSecretRef: { name: "s" } } }),
  volume({ azureFile: { secretName: "s", shareName: "n" } }),
  volume({ emptyDir: {} }),
];

interface PodResponse extends ApiResponse {
  readonly body: Fields & { readonly spec?: Fields };
}

/** The same requests to any server, and its answers. */
export async function play(access: ApiAccess): Promise<Answer[]> {
  const answers: Answer[] = [];
  const root = "/api/v1/namespaces/accounts";
  const send = (request: ApiRequest) => exchange(access, request);
  const ask = async (request: ApiRequest): Promise<void> => {
    const { body, ...others } = normalised(await send(request)) as PodResponse;
    // Another plug-in of kube-apiserver adds tolerations, which we do not have.
    const { tolerations: _, ...spec } = body.spec ?? {};
    const text = JSON.stringify({ ...others, body: body.spec ? { ...body, spec } : body });
    const response = JSON.parse(text.replaceAll(/kube-api-access-[a-z0-9]{5}\b/g, "<volume>"));
    answers.push({ request: JSON.stringify(request), response });
  };
  const post = (path: string, body: unknown): ApiRequest => ({ method: "POST", path, body });
  await send(post("/api/v1/namespaces", { metadata: { name: "accounts" } }));
  // A controller of ours makes the account default, too.
  for (const account of ACCOUNTS) await send(post(`${root}/serviceaccounts`, account));
  for (const [i, spec] of SPECS.entries())
    await ask(
      post(`${root}/pods`, {
        metadata: { name: `p${i}` },
        spec: { containers: [container()], ...spec },
      }),
    );
  const annotations = { "kubernetes.io/config.mirror": "x" };
  for (const [i, spec] of MIRRORS.entries()) {
    const metadata = { name: `m${i}`, annotations };
    await ask(
      post(`${root}/pods`, {
        metadata,
        spec: { nodeName: "n", containers: [container()], ...spec },
      }),
    );
  }
  await ask({
    method: "PATCH",
    path: `${root}/pods/p11/ephemeralcontainers`,
    body: { spec: { ephemeralContainers: [{ ...container(secretVariable("own")), name: "e" }] } },
    headers: { "content-type": "application/strategic-merge-patch+json" },
  });
  return answers;
}
