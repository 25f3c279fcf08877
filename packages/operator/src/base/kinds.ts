/** The four kinds: what people write, and what the operator reports. Schemas are in schemas.ts. */
import type { KubeObject } from "./kube.ts";

/** metav1.Condition. */
export interface Condition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  /** RFC 3339, in whole seconds. */
  readonly lastTransitionTime: string;
}

/** Parts of the members' pods, as in a pod's spec. */
export interface PodParts {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly resources?: object;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly object[];
  readonly affinity?: object;
  readonly topologySpreadConstraints?: readonly object[];
  readonly priorityClassName?: string;
  readonly serviceAccountName?: string;
  readonly imagePullSecrets?: readonly object[];
  readonly securityContext?: object;
}

export interface ClusterSpec {
  /** 1, 3, 5 or 7; with 0 no member runs, and their data are kept. */
  readonly size: number;
  readonly image: string;
  readonly storage: {
    readonly size: string;
    readonly storageClassName?: string;
    /** What becomes of the claims when the cluster is deleted. */
    readonly onDelete: "Keep" | "Delete";
  };
  readonly flags?: Readonly<Record<string, string>>;
  readonly pod?: PodParts;
  /** Zones of nodes, over which the members are spread; a member stays in the zone of its disk. */
  readonly zones?: readonly string[];
  /** Labels of the PodMonitor. */
  readonly monitor?: { readonly labels?: Readonly<Record<string, string>> };
  readonly recovery: "auto" | "manual";
  /** How long a member may be away before another one takes its place. */
  readonly replaceAfterSeconds: number;
  readonly certificates: {
    readonly validDays: number;
    /** Of cert-manager, which then makes them in place of an authority of the cluster's own. */
    readonly issuerRef?: {
      readonly name: string;
      readonly kind: string;
      readonly group: string;
    };
  };
  /** Whether clients need a user. */
  readonly users: boolean;
}

export interface ClusterStatus {
  readonly observedGeneration?: number;
  /** Hexadecimal; empty until the first member has begun. */
  readonly clusterID?: string;
  /** Members in the cluster's own list, and those of them that are ready voters. */
  readonly members?: number;
  readonly readyMembers?: number;
  readonly leader?: string;
  /** The lowest version of all members. */
  readonly version?: string;
  readonly selector?: string;
  /** The highest number in the name of a member so far. */
  readonly lastNumber?: number;
  readonly memberList?: readonly MemberStatus[];
  readonly conditions?: readonly Condition[];
  /** A lost quorum that is being recovered from this member. */
  readonly recovery?: { readonly survivor: string; readonly forced: boolean } | null;
  /** The uid of the QuorateRestore that was done last. */
  readonly restored?: string;
  /** How often its keys went back to an older state: restores, and recoveries of a quorum. */
  readonly history?: number;
  /** RFC 3339: when the first of the operator's certificates ends. */
  readonly certificatesEnd?: string;
}

export interface MemberStatus {
  /** Its pod's and its claim's as well. */
  readonly name: string;
  readonly id: string;
  readonly role: "leader" | "voter" | "learner";
  readonly ready: boolean;
  readonly version: string;
}

export type QuorateCluster = KubeObject<ClusterSpec, ClusterStatus>;

/** A place in an object store that speaks S3. */
export interface MirrorSpec {
  /** s3://bucket/prefix */
  readonly url: string;
  readonly endpoint?: string;
  readonly region?: string;
  /**
   * Secret with "credentials", a file as ~/.aws/credentials, and, for a mirror that is encrypted,
   * "encryption-key".
   */
  readonly secret: string;
}

export interface BackupSpec {
  readonly cluster: string;
  /** A claim that is there, and a directory in it. */
  readonly claim: string;
  readonly path: string;
  /** Either of the two. Durations are Go's. */
  readonly continuous?: {
    readonly baseInterval: string;
    readonly retain: string;
    /** Where the directory is copied to while it grows. */
    readonly mirror?: MirrorSpec;
  };
  readonly scheduled?: { readonly every: string; readonly keep: number };
  /** How often a member is filled from it, and its keys compared with the cluster's. */
  readonly restoreTest?: { readonly every: string };
}

export interface BackupStatus {
  readonly observedGeneration?: number;
  readonly lastStart?: string;
  readonly lastSuccess?: string;
  readonly lastTest?: string;
  /** Of a continuous one: the directory of the cluster's present history, and which that is. */
  readonly directory?: string;
  readonly history?: number;
  readonly conditions?: readonly Condition[];
}

export type QuorateBackup = KubeObject<BackupSpec, BackupStatus>;

export interface RestoreSpec {
  /** The cluster that is made, or whose keys are replaced. */
  readonly cluster: string;
  /** Of a new cluster; absent for a restore in place. */
  readonly create?: ClusterSpec;
  readonly from: {
    readonly claim: string;
    /** A snapshot file, a directory of such (the newest is taken), or a continuous backup. */
    readonly path: string;
    /** A revision or a time of a continuous backup; by default the newest. */
    readonly at?: string;
    /** Where the directory is fetched from first. */
    readonly mirror?: MirrorSpec;
  };
  /** Added to the revision, so that watchers and caches of clients notice. */
  readonly bumpRevision: number;
}

export interface RestoreStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
}

export type QuorateRestore = KubeObject<RestoreSpec, RestoreStatus>;

export interface UserSpec {
  readonly cluster: string;
  /** By default the object's name. */
  readonly username?: string;
  readonly passwordSecret: { readonly name: string; readonly key: string };
  readonly permissions: readonly {
    readonly access: "read" | "write" | "readwrite";
    readonly key: string;
    /** All keys that begin with `key`. */
    readonly prefix?: boolean;
  }[];
}

export interface UserStatus {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
  /** resourceVersion of the secret whose password was set. */
  readonly passwordVersion?: string;
}

export type QuorateUser = KubeObject<UserSpec, UserStatus>;

/** A condition to be reported, before its times. */
export type Finding = Pick<Condition, "type" | "status" | "reason" | "message">;

/** RFC 3339 without fractions. */
export const timeText = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

/** The conditions of these findings; the time of one whose status stays is kept. */
export function withFindings(
  before: readonly Condition[],
  findings: readonly Finding[],
  generation: number,
  nowMs: number,
): Condition[] {
  return findings.map((finding) => {
    const old = before.find(({ type }) => type === finding.type);
    const kept = old?.status === finding.status ? old.lastTransitionTime : timeText(nowMs);
    return { ...finding, observedGeneration: generation, lastTransitionTime: kept };
  });
}
