/** What a member does for its place in the cluster and for the cluster itself, put together. */
import type { Clock, Logger } from "@quorate/host";
import type { EtcdError, raftpb } from "@quorate/proto";
import type { ConfChangeResult, Status, TransferResult } from "@quorate/raft";
import type { Applied, AppliedEntry, RequestKind } from "@quorate/store";
import type { AskMembers, PeerCall, PeerStatus } from "@quorate/transport";
import type { MemberConfig } from "../config/member-config.ts";
import type { StoreRef } from "../reads/store-ref.ts";
import { askMembers } from "./ask-members.ts";
import { AutoPromotion } from "./auto-promotion.ts";
import { Departure } from "./departure.ts";
import { Leadership } from "./leadership.ts";
import { Reconfiguration } from "./reconfiguration.ts";
import { VersionMonitor } from "./version-monitor.ts";

export type { Removal } from "./departure.ts";
export { Leadership } from "./leadership.ts";
export { quorumOf } from "./quorum-checks.ts";
export { Reconfiguration } from "./reconfiguration.ts";

/** The member, as these parts see it. */
export interface ClusterKeepingParts {
  readonly memberId: bigint;
  readonly clusterId: bigint;
  readonly config: MemberConfig;
  /** How long a request may take. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly call: PeerCall;
  readonly store: StoreRef;
  peers(): readonly PeerStatus[];
  leader(): bigint;
  isLearner(): boolean;
  status(): Status;
  nextRequestId(): bigint;
  proposeChange(change: raftpb.ConfChange): ConfChangeResult;
  propose(kind: RequestKind, request: Uint8Array): Promise<Applied>;
  wait(requestId: bigint): Promise<AppliedEntry>;
  linearizable(): Promise<void>;
  promoted(error: EtcdError | undefined): void;
  transfer(to: bigint): TransferResult;
  hasEnded(): boolean;
  stopServing(): void;
  end(error?: Error): void;
}

/** What the links to other members need of this one. */
export interface LinkQuestions {
  /** Whether a member was removed from the cluster: the refusal of its messages says so. */
  isRemoved(id: bigint): boolean;
  /** A peer says that this member was removed. */
  selfRemoved(): void;
  readonly askMembers: AskMembers;
}

export interface ClusterKeeping {
  readonly links: LinkQuestions;
  readonly leadership: Leadership;
  readonly reconfiguration: Reconfiguration;
  readonly departure: Departure;
  readonly versions: VersionMonitor;
  readonly autoPromotion: AutoPromotion;
}

export function clusterKeeping(parts: ClusterKeepingParts): ClusterKeeping {
  const { config, memberId } = parts;
  const leadership = new Leadership({ ...parts, electionTimeoutMs: config.electionTimeoutMs });
  const reconfiguration = new Reconfiguration({
    ...parts,
    strict: config.strictReconfigCheck,
    propose: (change) => parts.proposeChange(change),
    depose: (id) => leadership.depose(id),
  });
  const departure = new Departure({
    ...parts,
    dataDir: config.dataDir,
    electionTimeoutMs: config.electionTimeoutMs,
  });
  const peerUrls = () => parts.peers().flatMap((peer) => peer.urls);
  return {
    links: {
      isRemoved: (id) => parts.store.current.membership.isRemoved(id),
      selfRemoved: () => departure.known(),
      askMembers: (onMembers) => askMembers({ ...parts, peerUrls }, onMembers),
    },
    leadership,
    reconfiguration,
    departure,
    versions: new VersionMonitor({
      ...parts,
      membership: () => parts.store.current.membership,
      isLeader: () => parts.leader() === memberId,
      propose: (request) => parts.propose("clusterVersionSet", request),
    }),
    autoPromotion: new AutoPromotion({
      ...parts,
      isPublished: () => (parts.store.current.membership.member(memberId)?.name ?? "") !== "",
      promote: () => reconfiguration.promote(memberId),
    }),
  };
}
