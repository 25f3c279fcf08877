/**
 * Kubernetes as the operator sees it: objects as plain JSON, and the few calls that it makes. Lists
 * are read from the API server each time, so no decision rests on a cache that lags behind the
 * operator's own writes.
 */
import { CodedError } from "@quorate/proto";

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly OwnerReference[];
}

/** An object of any kind. */
export interface KubeObject<Spec = unknown, Status = unknown> {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: Metadata;
  readonly spec?: Spec;
  readonly status?: Status;
  /** Of secrets: base64. */
  readonly data?: Readonly<Record<string, string>>;
}

/** The API group of the operator's kinds. */
export const GROUP = "quorate.dev";
export const VERSION = "v1alpha1";

/** Where the objects of a kind are. */
export const RESOURCES = {
  Pod: { apiVersion: "v1", plural: "pods" },
  PersistentVolumeClaim: { apiVersion: "v1", plural: "persistentvolumeclaims" },
  Service: { apiVersion: "v1", plural: "services" },
  Secret: { apiVersion: "v1", plural: "secrets" },
  Event: { apiVersion: "v1", plural: "events" },
  PodDisruptionBudget: { apiVersion: "policy/v1", plural: "poddisruptionbudgets" },
  PodMonitor: { apiVersion: "monitoring.coreos.com/v1", plural: "podmonitors" },
  Certificate: { apiVersion: "cert-manager.io/v1", plural: "certificates" },
  StorageClass: { apiVersion: "storage.k8s.io/v1", plural: "storageclasses" },
  Lease: { apiVersion: "coordination.k8s.io/v1", plural: "leases" },
  QuorateCluster: { apiVersion: `${GROUP}/${VERSION}`, plural: "quorateclusters" },
  QuorateBackup: { apiVersion: `${GROUP}/${VERSION}`, plural: "quoratebackups" },
  QuorateRestore: { apiVersion: `${GROUP}/${VERSION}`, plural: "quoraterestores" },
  QuorateUser: { apiVersion: `${GROUP}/${VERSION}`, plural: "quorateusers" },
} as const;

export type Kind = keyof typeof RESOURCES;

/** `reason` of a Status: NotFound, Conflict, AlreadyExists, Invalid and others. */
export class KubeError extends CodedError<string> {
  readonly status: number;

  constructor(status: number, reason: string, message: string) {
    super("KubeError", reason, message);
    this.status = status;
  }
}

/** A JSON merge patch (RFC 7396). With metadata.resourceVersion it is refused after a change. */
export type MergePatch = Readonly<Record<string, unknown>>;

/** Calls to the API server. All reject with KubeError, or Error where there is no response. */
export interface Kube {
  /** @param namespace "" for all. @param labels a selector, "" for all */
  list<T extends KubeObject>(kind: Kind, namespace: string, labels: string): Promise<T[]>;
  /** Undefined where there is none. */
  get<T extends KubeObject>(kind: Kind, namespace: string, name: string): Promise<T | undefined>;
  create(object: KubeObject): Promise<void>;
  /** @param subresource "" for the object itself */
  patch(
    kind: Kind,
    namespace: string,
    name: string,
    patch: MergePatch,
    subresource: "" | "status",
  ): Promise<void>;
  /** Does nothing where there is none, or one of another uid. */
  remove(kind: Kind, namespace: string, name: string, uid: string): Promise<void>;
  /**
   * Calls `changed` with each object that changes from now on; a break of the connection may lose
   * changes, and calls `lost`. Returns what ends it.
   */
  watch(
    kind: Kind,
    namespace: string,
    changed: (object: KubeObject) => void,
    lost: (error: unknown) => void,
  ): () => void;
}

/** Namespace and name of an object. */
export interface Key {
  readonly namespace: string;
  readonly name: string;
}

export const keyOf = ({ metadata }: KubeObject): Key => ({
  namespace: metadata.namespace ?? "",
  name: metadata.name,
});

/** The reference that has an object go with its owner. */
export function ownerOf({ apiVersion, kind, metadata }: KubeObject): OwnerReference {
  return {
    apiVersion,
    kind,
    name: metadata.name,
    uid: metadata.uid ?? "",
    controller: true,
    blockOwnerDeletion: true,
  };
}

export const annotationOf = ({ metadata }: KubeObject, name: string): string | undefined =>
  metadata.annotations?.[name];

/** The objects; undefined where the API server does not serve the kind. */
export async function listServed(
  kube: Kube,
  kind: Kind,
  namespace: string,
  labels: string,
): Promise<KubeObject[] | undefined> {
  try {
    return await kube.list(kind, namespace, labels);
  } catch (error) {
    if (error instanceof KubeError && error.status === 404) return undefined;
    throw error;
  }
}

/** Creates an object, unless it is there: then the next look sees it. */
export async function createOnce(kube: Kube, object: KubeObject): Promise<void> {
  try {
    await kube.create(object);
  } catch (error) {
    if (!(error instanceof KubeError) || error.code !== "AlreadyExists") throw error;
  }
}
