/**
 * The members of the cluster, the removed ones, and the version that all members support. A part of
 * the replicated state: it changes only by applied entries, and is read from the backend at start.
 */
import {
  defined,
  type ErrorName,
  equals,
  fromUtf8,
  idFromHex,
  idToHex,
  raftpb,
  toUtf8,
} from "@quorate/proto";
import { type Backend, type BackendSnapshot, Bucket } from "../backend/backend.ts";
import { StoreDamageError } from "../backend/errors.ts";
import { assert } from "../backend/invariants.ts";
import {
  type ChangeContext,
  decodeChangeContext,
  decodeMember,
  encodeMember,
  type Member,
} from "./member.ts";

/** Records of the bucket cluster. */
const CLUSTER_VERSION = fromUtf8("clusterVersion");
const DOWNGRADE = fromUtf8("downgrade");
const REMOVED = fromUtf8("removed");
/** etcd's default. */
const DEFAULT_MAX_LEARNERS = 1;

function memberKey(id: bigint): Uint8Array {
  return fromUtf8(idToHex(id));
}

/** The member id in a key. Throws SyntaxError for another key. */
function idOf(key: Uint8Array): bigint {
  const id = idFromHex(toUtf8(key));
  if (id === undefined) throw new SyntaxError("the key is not a member id");
  return id;
}

/** The result of `read` for a record; an error of it is damage. */
function readable<T>(path: string, bucket: string, key: Uint8Array, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new StoreDamageError(
      path,
      `bucket ${bucket}, key ${toUtf8(key)}`,
      (error as Error).message,
    );
  }
}

/** Puts a member's record into the batch that is being collected. */
export function putMember(backend: Backend, member: Member): void {
  backend.put(Bucket.members, memberKey(member.id), encodeMember(member));
}

/** What the backend holds of a membership. */
export interface MembershipRecords {
  readonly members: readonly Member[];
  readonly removed: readonly bigint[];
  /** Undefined before it was determined. */
  readonly clusterVersion: string | undefined;
}

/** The membership as of a snapshot. @param path the store's directory, for error texts */
export async function membershipIn(
  snapshot: BackendSnapshot,
  path: string,
): Promise<MembershipRecords> {
  const members: Member[] = [];
  for await (const slice of snapshot.scan(Bucket.members)) {
    for (const [key, value] of slice) {
      const id = readable(path, "members", key, () => idOf(key));
      members.push({ ...readable(path, "members", key, () => decodeMember(value)), id });
    }
  }
  const removed: bigint[] = [];
  for await (const slice of snapshot.scan(Bucket.membersRemoved))
    for (const [key] of slice)
      removed.push(readable(path, "members_removed", key, () => idOf(key)));
  let clusterVersion: string | undefined;
  for await (const slice of snapshot.scan(Bucket.cluster))
    for (const [key, value] of slice)
      if (equals(key, CLUSTER_VERSION)) clusterVersion = toUtf8(value);
  return { members, removed, clusterVersion };
}

export class Membership {
  readonly #backend: Backend;
  readonly #members = new Map<bigint, Member>();
  readonly #removed = new Set<bigint>();
  #clusterVersion: string | undefined;
  #isDowngrading = false;

  private constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Reads the membership as of a snapshot. @param path the store's directory, for error texts */
  static async open(
    backend: Backend,
    snapshot: BackendSnapshot,
    path: string,
  ): Promise<Membership> {
    const membership = new Membership(backend);
    const read = await membershipIn(snapshot, path);
    for (const member of read.members) membership.#members.set(member.id, member);
    for (const id of read.removed) membership.#removed.add(id);
    membership.#clusterVersion = read.clusterVersion;
    const downgrade = backend.get(Bucket.cluster, DOWNGRADE);
    membership.#isDowngrading =
      downgrade !== undefined &&
      readable(path, "cluster", DOWNGRADE, () => JSON.parse(toUtf8(downgrade)).enabled === true);
    return membership;
  }

  /**
   * Compares the records with the configuration of the log at the same index, which names the same
   * members. @param path the store's directory, for error texts @throws StoreDamageError
   */
  check({ voters, votersOutgoing, learners }: raftpb.ConfState, path: string): void {
    const configured = new Set([...voters, ...votersOutgoing, ...learners]);
    const wrong =
      [...configured].find((id) => !this.#members.has(id)) ??
      [...this.#members.keys()].find((id) => !configured.has(id));
    if (wrong === undefined) return;
    const problem = configured.has(wrong)
      ? "the record of a member of the configuration is missing"
      : "a member is not in the configuration";
    throw new StoreDamageError(path, `bucket members, key ${idToHex(wrong)}`, problem);
  }

  /** All members by ascending id. */
  members(): Member[] {
    return [...this.#members.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  member(id: bigint): Member | undefined {
    return this.#members.get(id);
  }

  isRemoved(id: bigint): boolean {
    return this.#removed.has(id);
  }

  /** All of it, as the backend holds it; by ascending id. */
  get records(): MembershipRecords {
    const removed = [...this.#removed].sort((a, b) => (a < b ? -1 : 1));
    return { members: this.members(), removed, clusterVersion: this.#clusterVersion };
  }

  /** The version that all members support, such as "3.7.0"; undefined before it was determined. */
  get clusterVersion(): string | undefined {
    return this.#clusterVersion;
  }

  /**
   * Notes the target of a downgrade, or that there is none (etcd: SetDowngradeInfo). Members of
   * etcd read it; here nothing follows from it.
   */
  setDowngrade(enabled: boolean, target: string): void {
    const info = { "target-version": enabled ? target : "", enabled };
    this.#isDowngrading = enabled;
    this.#backend.put(Bucket.cluster, DOWNGRADE, fromUtf8(JSON.stringify(info)));
  }

  get isDowngrading(): boolean {
    return this.#isDowngrading;
  }

  setClusterVersion(version: string): void {
    this.#clusterVersion = version;
    this.#backend.put(Bucket.cluster, CLUSTER_VERSION, fromUtf8(version));
  }

  /**
   * Stores the name and client URLs that a member published. Ignores unknown and removed members,
   * like etcd.
   */
  setAttributes(id: bigint, name: string, clientUrls: readonly string[]): void {
    const member = this.#members.get(id);
    if (member !== undefined) this.#save({ ...member, name, clientUrls });
  }

  /**
   * The reason why a change does not fit this membership, or undefined (etcd:
   * RaftCluster.ValidateConfigurationChange). Every member decides alike when it applies the entry.
   * @param maxLearners the maximum number of learners; must be the same on all members
   */
  refusal(change: raftpb.ConfChange, maxLearners = DEFAULT_MAX_LEARNERS): ErrorName | undefined {
    const id = change.nodeId;
    if (this.#removed.has(id)) return "MemberNotFound";
    const known = this.#members.get(id);
    switch (change.type) {
      case raftpb.ConfChangeType.ConfChangeAddNode:
      case raftpb.ConfChangeType.ConfChangeAddLearnerNode: {
        const context = decodeChangeContext(change.context);
        if (context.isPromote) {
          if (known === undefined) return "MemberNotFound";
          return known.isLearner ? undefined : "MemberNotLearner";
        }
        if (known !== undefined) return "MemberExist";
        if (this.#urlTaken(context.member.peerUrls, id)) return "PeerURLExist";
        const isLearner =
          context.member.isLearner &&
          change.type === raftpb.ConfChangeType.ConfChangeAddLearnerNode;
        const learners = this.members().filter((member) => member.isLearner).length;
        return isLearner && learners >= maxLearners ? "TooManyLearners" : undefined;
      }
      case raftpb.ConfChangeType.ConfChangeRemoveNode:
        return known === undefined ? "MemberNotFound" : undefined;
      case raftpb.ConfChangeType.ConfChangeUpdateNode:
        if (known === undefined) return "MemberNotFound";
        return this.#urlTaken(decodeMember(change.context).peerUrls, id)
          ? "PeerURLExist"
          : undefined;
      default:
        assert(false, "STORE-2", `a configuration change has the unknown type ${change.type}`);
    }
  }

  /** Applies a change that was not refused. */
  carryOut(change: raftpb.ConfChange): void {
    const id = change.nodeId;
    switch (change.type) {
      case raftpb.ConfChangeType.ConfChangeAddNode:
      case raftpb.ConfChangeType.ConfChangeAddLearnerNode: {
        const context: ChangeContext = decodeChangeContext(change.context);
        const isLearner = change.type === raftpb.ConfChangeType.ConfChangeAddLearnerNode;
        const known = this.#members.get(id);
        this.#save(
          context.isPromote && known !== undefined
            ? { ...known, isLearner: false }
            : { ...context.member, id, isLearner },
        );
        return;
      }
      case raftpb.ConfChangeType.ConfChangeRemoveNode:
        this.#members.delete(id);
        this.#removed.add(id);
        this.#backend.delete(Bucket.members, memberKey(id));
        this.#backend.put(Bucket.membersRemoved, memberKey(id), REMOVED);
        return;
      default: {
        const known = defined(this.#members.get(id), "the member");
        this.#save({ ...known, peerUrls: decodeMember(change.context).peerUrls });
      }
    }
  }

  #urlTaken(peerUrls: readonly string[], id: bigint): boolean {
    return this.members().some(
      (member) => member.id !== id && member.peerUrls.some((url) => peerUrls.includes(url)),
    );
  }

  #save(member: Member): void {
    this.#members.set(member.id, member);
    putMember(this.#backend, member);
  }
}
