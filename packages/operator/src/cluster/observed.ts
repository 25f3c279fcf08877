/**
 * What was found of a cluster: the object, its children in Kubernetes, and what its members say.
 * All that plan.ts decides rests on one value of this type.
 */
import type { QuorateCluster } from "../base/kinds.ts";
import type { Kind, KubeObject } from "../base/kube.ts";

/** How a member's pod starts. */
export type PodMode =
  /** It begins a cluster of one, or serves data that a restore has put there. */
  | "new"
  /** It joins as the learner that was added for it. */
  | "join"
  /** It has data; without them it ends with DATA_LOST_CODE instead of joining in disguise. */
  | "run"
  /** It makes a cluster of one of its data: a lost quorum is recovered. */
  | "force";

/** Exit code of a container that misses the data that were there. */
export const DATA_LOST_CODE = 66;

export interface PodView {
  readonly name: string;
  readonly uid: string;
  readonly mode: PodMode;
  /** Hash of what it was made from. */
  readonly template: string;
  readonly isReady: boolean;
  /** Since when it is ready, or not; its creation where it never said. */
  readonly sinceMs: number;
  readonly isTerminating: boolean;
  readonly hasLostData: boolean;
  /** Of a pod that runs once, and what it said when it ended. */
  readonly phase: string;
  readonly lastWords: string;
}

export interface ClaimView {
  readonly name: string;
  readonly uid: string;
  /** Whether its volume is gone. */
  readonly isLost: boolean;
  readonly isTerminating: boolean;
  readonly isBound: boolean;
  readonly requestedBytes: number;
  /** What its volume has; undefined where that is not said. */
  readonly capacityBytes: number | undefined;
  /** Id of the member that was added for it, hexadecimal. */
  readonly memberId: string | undefined;
  /** Whether that member has started once, so that its data are there. */
  readonly hasStarted: boolean;
  readonly isSeed: boolean;
  /** Where its pods are to be; undefined for anywhere. */
  readonly zone: string | undefined;
  /** The restore that it was made for, and whether that has put its data there. */
  readonly restoreId: string | undefined;
  readonly isFilled: boolean;
}

export interface MemberView {
  /** Hexadecimal. */
  readonly id: string;
  /** The first part of the host in its peer URL: the name of its pod and its claim. */
  readonly pod: string;
  readonly isLearner: boolean;
  readonly hasStarted: boolean;
}

/** What a member says of itself, with or without a quorum. */
export interface Reached {
  readonly id: string;
  /** "0" for none. */
  readonly leader: string;
  readonly term: number;
  /** The committed index of its log. */
  readonly index: number;
  readonly version: string;
  readonly isLearner: boolean;
}

export interface CertificateView {
  readonly fromMs: number;
  readonly untilMs: number;
  /** Whether the present authority signed it, and its bundle is the present one. */
  readonly isCurrent: boolean;
  /** The request for rotation that it answers. */
  readonly request: string;
}

export interface AuthorityView {
  readonly fromMs: number;
  readonly untilMs: number;
  /** What it hands over: to a next one that all must trust first, from a previous one. */
  readonly stage: "alone" | "next" | "previous";
  readonly stageSinceMs: number;
  readonly request: string;
}

export const LEAVES = ["member", "root", "client"] as const;
export type Leaf = (typeof LEAVES)[number];

export interface Observed {
  readonly nowMs: number;
  readonly cluster: QuorateCluster;
  /** The members' pods and claims of this cluster, by name. */
  readonly pods: ReadonlyMap<string, PodView>;
  readonly claims: ReadonlyMap<string, ClaimView>;
  /** Whether the storage class of the claims lets them grow; false where none has to. */
  readonly canGrow: boolean;
  /** Names of claims that another cluster of this name left behind. */
  readonly strangers: readonly string[];
  /** The pod that fills a claim from a backup. */
  readonly restorePod: PodView | undefined;
  /** Services, the disruption budget and such objects that are there, by "Kind/name". */
  readonly shared: ReadonlyMap<string, KubeObject>;
  /** Kinds of others that the API server serves. */
  readonly served: ReadonlySet<Kind>;
  readonly authority: AuthorityView | undefined;
  readonly leaves: Readonly<Partial<Record<Leaf, CertificateView>>>;
  /** The members by a quorum; undefined where none responds. */
  readonly members: readonly MemberView[] | undefined;
  /** The cluster's id, hexadecimal, with `members`. */
  readonly clusterId: string;
  /** Members that respond, by the names of their pods. */
  readonly reached: ReadonlyMap<string, Reached>;
  /** Whether the cluster asks for users; undefined where that is not known. */
  readonly asksForUsers: boolean | undefined;
}

/** The number behind the last dash of a member's name. */
export const ordinalOf = (name: string): number => Number(name.slice(name.lastIndexOf("-") + 1));

/** Those with lower numbers first. */
export const byOrdinal = (a: { readonly name: string }, b: { readonly name: string }): number =>
  ordinalOf(a.name) - ordinalOf(b.name);
