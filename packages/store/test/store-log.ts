/** Logs for whole stores: entries as raft hands them over, and a random history in them. */
import {
  CompactionRequest,
  DeleteRangeRequest,
  EMPTY,
  fromUtf8,
  InternalRaftRequest,
  LeaseGrantRequest,
  LeaseRevokeRequest,
  membershippb,
  PutRequest,
  RangeRequest,
  raftpb,
  TxnRequest,
} from "@quorate/proto";
import { checkTxn } from "@quorate/store";
import { encodeChangeContext, type Member } from "../src/membership/member.ts";
import type { Store } from "../src/store.ts";
import { History, Prng } from "./mvcc-history.ts";

/** A member as a new cluster's first entries describe it. */
export function member(id: bigint, isLearner = false): Member {
  return { id, name: "", peerUrls: [`http://10.0.0.${id}:2380`], clientUrls: [], isLearner };
}

export function addMember(added: Member, isPromote = false): raftpb.ConfChange {
  const type = added.isLearner
    ? raftpb.ConfChangeType.ConfChangeAddLearnerNode
    : raftpb.ConfChangeType.ConfChangeAddNode;
  return raftpb.ConfChange.create({
    type,
    nodeId: added.id,
    context: encodeChangeContext({ member: added, isPromote }),
  });
}

export function removeMember(nodeId: bigint): raftpb.ConfChange {
  return raftpb.ConfChange.create({ type: raftpb.ConfChangeType.ConfChangeRemoveNode, nodeId });
}

export function updateMember(updated: Member): raftpb.ConfChange {
  const context = encodeChangeContext({ member: updated, isPromote: false });
  return raftpb.ConfChange.create({
    type: raftpb.ConfChangeType.ConfChangeUpdateNode,
    nodeId: updated.id,
    context,
  });
}

/** A growing log, two entries a term. */
export class Log {
  readonly entries: raftpb.Entry[] = [];

  request(request: Partial<InternalRaftRequest>): void {
    const header = { ID: BigInt(this.entries.length + 1), username: "", authRevision: 0 };
    this.#append(raftpb.EntryType.EntryNormal, InternalRaftRequest.encode({ header, ...request }));
  }

  put(key: string, value: string): void {
    this.request({ put: PutRequest.encode({ key: fromUtf8(key), value: fromUtf8(value) }) });
  }

  /** An entry with any data. */
  data(data: Uint8Array): void {
    this.#append(raftpb.EntryType.EntryNormal, data);
  }

  empty(): void {
    this.#append(raftpb.EntryType.EntryNormal, EMPTY);
  }

  change(change: raftpb.ConfChange): void {
    this.#append(raftpb.EntryType.EntryConfChange, raftpb.ConfChange.encode(change));
  }

  #append(type: raftpb.EntryType, data: Uint8Array): void {
    const index = this.entries.length + 1;
    this.entries.push({ type, index, term: 1 + (index >>> 1), data });
  }
}

/** Applies an entry as a member does; what it answers, for comparison. */
export function applyEntry(store: Store, entry: raftpb.Entry): unknown {
  if (entry.type === raftpb.EntryType.EntryNormal) {
    const { requestId, kind, response, error } = store.apply(entry);
    return { requestId, kind, response, error: error?.code };
  }
  const change = raftpb.ConfChange.decode(entry.data);
  const refusal = store.membership.refusal(change);
  const { confState } = store.position;
  store.applyConfChange(
    entry,
    refusal === undefined ? change : undefined,
    refusal === undefined ? afterChange(confState, change) : confState,
  );
  return { refusal };
}

function afterChange(
  confState: raftpb.ConfState,
  { type, nodeId }: raftpb.ConfChange,
): raftpb.ConfState {
  const { ConfChangeAddNode, ConfChangeAddLearnerNode, ConfChangeUpdateNode } =
    raftpb.ConfChangeType;
  if (type === ConfChangeUpdateNode) return confState;
  const voters = confState.voters.filter((id) => id !== nodeId);
  const learners = confState.learners.filter((id) => id !== nodeId);
  if (type === ConfChangeAddNode) voters.push(nodeId);
  if (type === ConfChangeAddLearnerNode) learners.push(nodeId);
  return raftpb.ConfState.create({ voters, learners });
}

/**
 * A random log of every kind of entry. Compactions and revisions to read at are chosen by a bound
 * on what the log can have reached, so some miss: errors are answers too. The `leases` are granted
 * and revoked at times.
 */
export function randomLog(seed: number, length: number, leases: readonly bigint[] = []): Log {
  const prng = new Prng(seed);
  const log = new Log();
  let current = 1;
  let compact = -1;
  const history = new History(prng, {
    leases: [...leases],
    noLease: 9n,
    revision: () => ({ current, compact }),
  });
  for (let id = 1n; id <= 3n; id++) log.change(addMember(member(id)));
  while (log.entries.length < length) {
    if (leases.length > 0 && prng.chance(8)) {
      const ID = prng.pick([...leases]);
      if (prng.chance(40)) log.request({ leaseRevoke: LeaseRevokeRequest.encode({ ID }) });
      else log.request({ leaseGrant: LeaseGrantRequest.encode({ ID, TTL: 10 }) });
    }
    const kind = prng.below(100);
    if (kind < 40) log.request({ put: PutRequest.encode(history.put()) });
    else if (kind < 50)
      log.request({ deleteRange: DeleteRangeRequest.encode(history.deleteRange()) });
    else if (kind < 78) {
      const txn = history.txn();
      if (checkTxn(txn, 128) !== undefined) continue;
      log.request({ txn: TxnRequest.encode(txn) });
    } else if (kind < 83) log.request({ range: RangeRequest.encode(history.range()) });
    else if (kind < 88) {
      const request = history.compaction();
      if (request.revision <= current) compact = Math.max(compact, request.revision);
      log.request({ compaction: CompactionRequest.encode(request) });
    } else if (kind < 91) log.empty();
    else if (kind < 93)
      log.request({
        clusterVersionSet: membershippb.ClusterVersionSetRequest.encode({
          ver: `3.${prng.below(9)}.0`,
        }),
      });
    else if (kind < 96) {
      const memberAttributes = {
        name: `m${prng.below(5)}`,
        clientUrls: [`http://c${prng.below(5)}:2379`],
      };
      const attributes = { member_ID: BigInt(1 + prng.below(6)), memberAttributes };
      log.request({
        clusterMemberAttrSet: membershippb.ClusterMemberAttrSetRequest.encode(attributes),
      });
    } else {
      const id = BigInt(1 + prng.below(6));
      const made = [
        () => addMember(member(id, prng.chance(30))),
        () => removeMember(id),
        () => updateMember(member(id)),
      ];
      log.change(prng.pick(made)());
    }
    // About as many of the entries change something.
    if (prng.chance(60)) current++;
  }
  return log;
}
