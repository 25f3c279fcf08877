/**
 * The claims of service account tokens and their validation against the objects that a token is
 * bound to (Kubernetes: pkg/serviceaccount/claims.go).
 *
 *     iss, sub, aud, iat, nbf, exp, jti
 *     kubernetes.io: { namespace, serviceaccount: {name, uid}, secret | pod | node: {name, uid},
 *                      warnafter }
 */
import { isObject, type KubeObject, type UserInfo } from "@quorate/kube-storage";
import { InvalidTokenError } from "./token-authenticator.ts";
import {
  CREDENTIAL_ID_KEY,
  NODE_NAME_KEY,
  NODE_UID_KEY,
  POD_NAME_KEY,
  POD_UID_KEY,
  serviceAccountGroups,
  serviceAccountUsername,
} from "./user-names.ts";

export interface ClaimRef {
  readonly name: string;
  readonly uid: string;
}

/** The private claim "kubernetes.io". */
export interface KubernetesClaims {
  readonly namespace: string;
  readonly serviceaccount: ClaimRef;
  readonly secret?: ClaimRef | undefined;
  readonly pod?: ClaimRef | undefined;
  readonly node?: ClaimRef | undefined;
  readonly warnafter?: number;
}

/** Clocks of servers may differ by as much (go-jose's DefaultLeeway). */
export const LEEWAY_MS = 60_000;

/**
 * Reads objects that tokens are bound to; undefined where there is none. Kinds that the server does
 * not serve (pods, nodes) have none.
 */
export interface BoundObjects {
  get(
    resource: "serviceaccounts" | "secrets" | "pods" | "nodes",
    namespace: string,
    name: string,
  ): Promise<KubeObject | undefined>;
}

/** The claim of a token, checked for its form; undefined for another kind of token. */
export function parseKubernetesClaims(claim: unknown): KubernetesClaims | undefined {
  if (!isObject(claim) || typeof claim["namespace"] !== "string") return undefined;
  const serviceaccount = refOf(claim["serviceaccount"]);
  const secret = refOf(claim["secret"]);
  const pod = refOf(claim["pod"]);
  const node = refOf(claim["node"]);
  if (serviceaccount === undefined || serviceaccount === "bad") return undefined;
  if (secret === "bad" || pod === "bad" || node === "bad") return undefined;
  return { namespace: claim["namespace"], serviceaccount, secret, pod, node };
}

/**
 * Checks that the account and the bound objects are still the same ones.
 * @throws InvalidTokenError with Kubernetes' text
 */
export async function validateBinding(
  claims: KubernetesClaims,
  objects: BoundObjects,
  wallMs: number,
): Promise<void> {
  const { namespace, serviceaccount, secret, pod, node } = claims;
  const { name } = serviceaccount;
  const account = await objects.get("serviceaccounts", namespace, name);
  if (account === undefined) {
    throw new InvalidTokenError(`serviceaccounts "${name}" not found`);
  }
  if (account.metadata.uid !== serviceaccount.uid) {
    throw new InvalidTokenError(
      `service account UID (${account.metadata.uid}) does not match claim (${serviceaccount.uid})`,
    );
  }
  if (isGone(account, wallMs)) {
    throw new InvalidTokenError(`service account ${namespace}/${name} has been deleted`);
  }
  if (secret !== undefined) await checkBound(objects, "secrets", namespace, secret, wallMs);
  if (pod !== undefined) await checkBound(objects, "pods", namespace, pod, wallMs);
  else if (node !== undefined) await checkBound(objects, "nodes", "", node, wallMs);
}

const BOUND = { secrets: "secret", pods: "pod", nodes: "node" } as const;

async function checkBound(
  objects: BoundObjects,
  resource: "secrets" | "pods" | "nodes",
  namespace: string,
  ref: ClaimRef,
  wallMs: number,
): Promise<void> {
  const object = await objects.get(resource, namespace, ref.name);
  if (object === undefined || isGone(object, wallMs)) {
    throw new InvalidTokenError("service account token has been invalidated");
  }
  if (object.metadata.uid !== ref.uid) {
    const kind = BOUND[resource];
    throw new InvalidTokenError(
      `${kind} UID (${object.metadata.uid}) does not match service account ${kind} ref claim ` +
        `(${ref.uid})`,
    );
  }
}

/** The user that a valid token proves. */
export function userOfClaims(claims: KubernetesClaims, tokenId: string | undefined): UserInfo {
  const { namespace, serviceaccount, pod, node } = claims;
  const extra: Record<string, readonly string[]> = {};
  if (pod !== undefined && pod.name !== "" && pod.uid !== "") {
    extra[POD_NAME_KEY] = [pod.name];
    extra[POD_UID_KEY] = [pod.uid];
  }
  if (tokenId !== undefined && tokenId !== "") extra[CREDENTIAL_ID_KEY] = [`JTI=${tokenId}`];
  if (node !== undefined && node.name !== "") {
    extra[NODE_NAME_KEY] = [node.name];
    if (node.uid !== "") extra[NODE_UID_KEY] = [node.uid];
  }
  return {
    name: serviceAccountUsername(namespace, serviceaccount.name),
    uid: serviceaccount.uid,
    groups: serviceAccountGroups(namespace),
    extra,
  };
}

/** Deleted more than the leeway ago, and only kept by a finalizer. */
function isGone(object: KubeObject, wallMs: number): boolean {
  const { deletionTimestamp } = object.metadata;
  return deletionTimestamp !== undefined && Date.parse(deletionTimestamp) < wallMs - LEEWAY_MS;
}

function refOf(value: unknown): ClaimRef | "bad" | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) return "bad";
  const { name, uid = "" } = value;
  return typeof name === "string" && typeof uid === "string" ? { name, uid } : "bad";
}
