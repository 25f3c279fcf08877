/**
 * ServiceAccount (kubernetes: plugin/pkg/admission/serviceaccount): a new pod runs as a service
 * account that exists, by default the one named default, and gets its token and its pull secrets.
 */
import { type Clock, type Random, sleep } from "@quorate/host";
import { generateName, type KubeObject, notFound, throwIfAborted } from "@quorate/kube-storage";
import { goBool, quoteText } from "@quorate/proto";
import type { AdmissionAttributes } from "./admission.ts";
import { type AdmissionPlugin, admissionForbidden, type FindNamed } from "./chain.ts";

const DEFAULT_NAME = "default";
const MIRROR_POD = "kubernetes.io/config.mirror";
const ENFORCES_SECRETS = "kubernetes.io/enforce-mountable-secrets";
const TOKEN_VOLUME = "kube-api-access-";
const TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const TOKEN_SECONDS = 3607;
/** A controller makes the default account of a new namespace; a pod waits for it so often. */
export const DEFAULT_ACCOUNT_ATTEMPTS = 10;
const MIN_PAUSE_MS = 100;

type Reference = Readonly<Record<string, unknown>>;

interface EnvSource {
  readonly secretKeyRef?: Named | null;
}

interface Named {
  readonly name?: string;
}

interface Container {
  readonly name?: string;
  readonly env?: readonly { readonly name?: string; readonly valueFrom?: EnvSource | null }[];
  readonly envFrom?: readonly { readonly secretRef?: Named | null }[];
  readonly volumeMounts?: readonly { readonly mountPath?: string }[];
}

interface Projection {
  readonly secret?: Named | null;
  readonly serviceAccountToken?: unknown;
}

type Volume = Readonly<Record<string, unknown>> & { readonly name?: string };

interface PodSpec {
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean | null;
  readonly imagePullSecrets?: readonly Named[];
  readonly initContainers?: readonly Container[];
  readonly containers?: readonly Container[];
  readonly ephemeralContainers?: readonly Container[];
  readonly volumes?: readonly Volume[];
}

interface ServiceAccount extends KubeObject {
  readonly automountServiceAccountToken?: boolean | null;
  readonly imagePullSecrets?: readonly Named[];
  readonly secrets?: readonly Named[];
}

export interface ServiceAccountDeps {
  readonly find: FindNamed;
  readonly clock: Clock;
  readonly random: Random;
}

const specOf = (pod: KubeObject): PodSpec => (pod["spec"] ?? {}) as PodSpec;

const isMirror = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[MIRROR_POD] !== undefined;

/** The plug-in; it rejects with ApiError. */
export function serviceAccount(deps: ServiceAccountDeps): AdmissionPlugin {
  return {
    resources: ["/pods"],
    async mutate(attributes) {
      const { object } = attributes;
      if (object === undefined || !isNewPod(attributes)) return object;
      if (isMirror(object)) {
        checkMirror(attributes, object);
        return object;
      }
      const name = specOf(object).serviceAccountName || DEFAULT_NAME;
      const account = await accountOf(attributes, name, deps);
      const pod = { ...object, spec: withAccount(specOf(object), name, account, deps.random) };
      checkSecrets(attributes, pod, account);
      return pod;
    },
    async validate(attributes) {
      const { object } = attributes;
      if (object === undefined) return;
      const isNew = isNewPod(attributes);
      if (!isNew && !addsEphemeral(attributes)) return;
      if (isNew && isMirror(object)) return checkMirror(attributes, object);
      const { serviceAccountName = "" } = specOf(object);
      if (serviceAccountName === "") {
        const { namespace, name } = attributes;
        const pod = `${namespace}/${object.metadata.name ?? name}`;
        throw admissionForbidden(attributes, `no service account specified for pod ${pod}`);
      }
      const account = await accountOf(attributes, serviceAccountName, deps);
      if (isNew) checkSecrets(attributes, object, account);
      else checkEphemeralSecrets(attributes, object, account);
    },
  };
}

function isNewPod(attributes: AdmissionAttributes): boolean {
  const { operation, subresource } = attributes;
  return operation === "CREATE" && subresource === "";
}

function addsEphemeral(attributes: AdmissionAttributes): boolean {
  const { operation, subresource } = attributes;
  return operation === "UPDATE" && subresource === "ephemeralcontainers";
}

async function accountOf(
  attributes: AdmissionAttributes,
  name: string,
  { find, clock, random }: ServiceAccountDeps,
): Promise<ServiceAccount> {
  const { namespace, signal } = attributes;
  const attempts = name === DEFAULT_NAME ? DEFAULT_ACCOUNT_ATTEMPTS : 1;
  const pauseMs = MIN_PAUSE_MS + random.below(MIN_PAUSE_MS);
  for (let attempt = 1; ; attempt++) {
    const found = await find(name, namespace);
    if (found !== undefined) return found as ServiceAccount;
    if (attempt === attempts) break;
    await sleep(clock, pauseMs);
    throwIfAborted(signal);
  }
  const { message } = notFound({ group: "", resource: "serviceaccount" }, name);
  const why = `error looking up service account ${namespace}/${name}: ${message}`;
  throw admissionForbidden(attributes, why);
}

function withAccount(spec: PodSpec, name: string, account: ServiceAccount, random: Random) {
  const { imagePullSecrets = [] } = spec;
  const pulls = imagePullSecrets.length > 0 ? imagePullSecrets : (account.imagePullSecrets ?? []);
  const named = {
    ...spec,
    serviceAccountName: name,
    serviceAccount: name,
    ...(pulls.length === 0
      ? {}
      : { imagePullSecrets: pulls.map(({ name: of = "" }) => ({ name: of })) }),
  };
  const mounts = spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true;
  return mounts ? withToken(named, random) : named;
}

function withToken(spec: PodSpec, random: Random): PodSpec {
  const { volumes = [] } = spec;
  const present = volumes.find(({ name = "" }) => name.startsWith(TOKEN_VOLUME));
  const name = present?.name ?? generateName(TOKEN_VOLUME, random);
  let isMounted = false;
  const mounted = (containers: readonly Container[]): Container[] =>
    containers.map((container) => {
      const { volumeMounts = [] } = container;
      if (volumeMounts.some(({ mountPath }) => mountPath === TOKEN_PATH)) return container;
      isMounted = true;
      const mount = { name, readOnly: true, mountPath: TOKEN_PATH };
      return { ...container, volumeMounts: [...volumeMounts, mount] };
    });
  const { initContainers, containers = [] } = spec;
  const next = {
    ...spec,
    ...(initContainers === undefined ? {} : { initContainers: mounted(initContainers) }),
    containers: mounted(containers),
  };
  if (present !== undefined || !isMounted) return next;
  return { ...next, volumes: [...volumes, { name, projected: tokenSource() }] };
}

function tokenSource() {
  const fieldRef = { apiVersion: "v1", fieldPath: "metadata.namespace" };
  return {
    sources: [
      { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: "token" } },
      { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
      { downwardAPI: { items: [{ path: "namespace", fieldRef }] } },
    ],
    defaultMode: 0o644,
  };
}

/** A pod that stands for one in a node's files may refer to nothing of the API. */
function checkMirror(attributes: AdmissionAttributes, pod: KubeObject): void {
  const spec = specOf(pod);
  const refused = (what: string) => admissionForbidden(attributes, `a mirror pod may not ${what}`);
  if (spec.serviceAccountName) throw refused("reference service accounts");
  if (hasSecrets(spec)) throw refused("reference secrets");
  for (const { projected } of spec.volumes ?? [])
    for (const { serviceAccountToken } of sourcesOf(projected))
      if (serviceAccountToken) throw refused("use ServiceAccountToken volume projections");
}

function sourcesOf(projected: unknown): readonly Projection[] {
  return (projected as { readonly sources?: readonly Projection[] } | null)?.sources ?? [];
}

function hasSecrets(spec: PodSpec): boolean {
  const { imagePullSecrets = [], volumes = [] } = spec;
  const { initContainers = [], containers = [], ephemeralContainers = [] } = spec;
  return (
    imagePullSecrets.length > 0 ||
    volumes.some(holdsSecret) ||
    [...initContainers, ...containers, ...ephemeralContainers].some(
      ({ env = [], envFrom = [] }) =>
        env.some(({ valueFrom }) => valueFrom?.secretKeyRef) ||
        envFrom.some(({ secretRef }) => secretRef),
    )
  );
}

/** Plug-ins of volumes name their secret in one of these fields. */
function holdsSecret({ name: _, projected, ...sources }: Volume): boolean {
  if (sourcesOf(projected).some(({ secret }) => secret)) return true;
  return Object.values(sources).some((source) => {
    const { secretName, secretRef, nodePublishSecretRef } = (source ?? {}) as Reference;
    return Boolean(secretName) || Boolean(secretRef) || Boolean(nodePublishSecretRef);
  });
}

/** Where the account says so, its pods use its secrets alone. */
function checkSecrets(
  attributes: AdmissionAttributes,
  pod: KubeObject,
  account: ServiceAccount,
): void {
  if (!enforcesSecrets(account)) return;
  const { initContainers = [], containers = [], volumes = [], imagePullSecrets = [] } = specOf(pod);
  const known = namesOf(account.secrets);
  for (const { secret } of volumes) {
    const { secretName = "" } = (secret ?? {}) as { readonly secretName?: string };
    if (!secret || known.has(secretName)) continue;
    const what = `volume with secret.secretName=${quoteText(secretName)}`;
    throw refusedSecret(attributes, what, account, "secret");
  }
  checkContainers(attributes, "init container", initContainers, account);
  checkContainers(attributes, "container", containers, account);
  const pulls = namesOf(account.imagePullSecrets);
  for (const [i, { name = "" }] of imagePullSecrets.entries()) {
    if (pulls.has(name)) continue;
    const what = `imagePullSecrets[${i}].name=${quoteText(name)}`;
    throw refusedSecret(attributes, what, account, "imagePullSecret");
  }
}

function checkEphemeralSecrets(
  attributes: AdmissionAttributes,
  pod: KubeObject,
  account: ServiceAccount,
): void {
  const { ephemeralContainers = [] } = specOf(pod);
  if (enforcesSecrets(account))
    checkContainers(attributes, "ephemeral container", ephemeralContainers, account);
}

function checkContainers(
  attributes: AdmissionAttributes,
  kind: string,
  containers: readonly Container[],
  account: ServiceAccount,
): void {
  const known = namesOf(account.secrets);
  const check = (where: string, name: string): void => {
    if (known.has(name)) return;
    const what = `${kind} ${where} referencing secret.secretName=${quoteText(name)}`;
    throw refusedSecret(attributes, what, account, "secret");
  };
  for (const { name = "", env = [], envFrom = [] } of containers) {
    for (const { name: variable = "", valueFrom } of env) {
      const ref = valueFrom?.secretKeyRef;
      if (ref) check(`${name} with envVar ${variable}`, ref.name ?? "");
    }
    for (const { secretRef } of envFrom)
      if (secretRef) check(`${name} with envFrom`, secretRef.name ?? "");
  }
}

function refusedSecret(
  attributes: AdmissionAttributes,
  what: string,
  { metadata }: ServiceAccount,
  kind: string,
) {
  const why = `service account ${metadata.name} does not reference that ${kind}`;
  return admissionForbidden(attributes, `${what} is not allowed because ${why}`);
}

function enforcesSecrets({ metadata }: ServiceAccount): boolean {
  return goBool(metadata.annotations?.[ENFORCES_SECRETS] ?? "") === true;
}

function namesOf(references: readonly Named[] = []): ReadonlySet<string> {
  return new Set(references.map(({ name = "" }) => name));
}
