/**
 * What a peer may be sent in a member's name. Raft trusts its members: who lies about what it has
 * on disk, or sends appends as the leader, can make a cluster lose what it has acknowledged, and no
 * check of contents finds that. So the fuzzer lies in everything but that: a message that a member
 * would have to believe is made one that it can see through, of a term long past or of an
 * impossible content.
 */
import { type MessageType, raftpb, WireError } from "@quorate/proto";
import type { SeededRandom } from "../support/random.ts";
import { type MessageMaker, varint } from "./messages.ts";

const { MsgProp, MsgVote, MsgPreVote, MsgTimeoutNow, MsgTransferLeader, MsgReadIndex } =
  raftpb.MessageType;

/** Messages in which a member claims what it has or knows. */
const VOUCHING: ReadonlySet<number> = new Set(
  (
    [
      "MsgApp",
      "MsgAppResp",
      "MsgHeartbeat",
      "MsgHeartbeatResp",
      "MsgPreVoteResp",
      "MsgReadIndexResp",
      "MsgSnap",
      "MsgVoteResp",
    ] as const
  ).map((name) => raftpb.MessageType[name]),
);

/** The pretended sender, the receiver, and what is known of the cluster. */
export interface Scene {
  readonly from: bigint;
  readonly to: bigint;
  readonly term: number;
  readonly lastIndex: number;
}

/** The fields of InternalRaftRequest that hold requests, with their types. */
const REQUESTS: readonly (readonly [field: number, typeName: string])[] = [
  [3, "etcdserverpb.RangeRequest"],
  [4, "etcdserverpb.PutRequest"],
  [5, "etcdserverpb.DeleteRangeRequest"],
  [6, "etcdserverpb.TxnRequest"],
  [7, "etcdserverpb.CompactionRequest"],
  [8, "etcdserverpb.LeaseGrantRequest"],
  [9, "etcdserverpb.LeaseRevokeRequest"],
  [11, "etcdserverpb.LeaseCheckpointRequest"],
  [1000, "etcdserverpb.AuthEnableRequest"],
  [1300, "membershippb.ClusterVersionSetRequest"],
  [1301, "membershippb.ClusterMemberAttrSetRequest"],
];

export class Liar {
  readonly #random: SeededRandom;
  readonly #maker: MessageMaker;
  #nextId = 1n;

  constructor(random: SeededRandom, maker: MessageMaker) {
    this.#random = random;
    this.#maker = maker;
  }

  /** An encoded message, or bytes that are none. */
  message(scene: Scene): Uint8Array {
    const random = this.#random;
    if (random.oneIn(4)) return harmless(this.#maker.malformed("raftpb.Message"), scene);
    const message = random.oneIn(2) ? this.#proposal(scene) : this.#ordinary(scene);
    return harmless(raftpb.Message.encode(message), scene);
  }

  #proposal({ from, to }: Scene): raftpb.Message {
    const entries = Array.from({ length: this.#random.below(4) }, () => this.#entry(from));
    return raftpb.Message.create({ type: MsgProp, from, to, entries });
  }

  #entry(from: bigint): raftpb.Entry {
    const random = this.#random;
    const type = random.pick([0, 0, 0, 0, 0, 1, 2, 3]) as raftpb.EntryType;
    if (type === 1)
      return { type, term: 0, index: 0, data: this.#maker.malformed("raftpb.ConfChange") };
    if (type !== 0 || random.oneIn(8))
      return {
        type,
        term: 0,
        index: 0,
        data: this.#maker.malformed("etcdserverpb.InternalRaftRequest"),
      };
    const id = random.oneIn(5)
      ? random.pick([0n, 1n, 2n ** 64n - 1n])
      : ((from & 0xffffn) << 48n) | this.#nextId++;
    const [field, typeName] = random.pick(REQUESTS);
    const body = random.oneIn(3) ? this.#maker.valid(typeName) : this.#maker.malformed(typeName);
    const header = [8, ...varint(id)];
    const envelope = [...varint(BigInt((100 << 3) | 2)), header.length, ...header];
    const request = [...varint(BigInt((field << 3) | 2)), ...varint(BigInt(body.length)), ...body];
    return { type, term: 0, index: 0, data: Uint8Array.from([...envelope, ...request]) };
  }

  #ordinary({ from, to, term, lastIndex }: Scene): raftpb.Message {
    const random = this.#random;
    const number = () =>
      random.pick([
        0,
        1,
        term,
        lastIndex,
        lastIndex + 1,
        2 ** 31,
        2 ** 40,
        2 ** 52,
        Number.MAX_SAFE_INTEGER,
      ]);
    const types = [
      MsgVote,
      MsgPreVote,
      MsgTimeoutNow,
      MsgTransferLeader,
      MsgReadIndex,
      ...VOUCHING,
      random.below(40),
    ];
    const type = random.pick(types) as raftpb.MessageType;
    const count = random.below(3);
    return raftpb.Message.create({
      type,
      from: random.oneIn(15) ? 99n : from,
      to: random.oneIn(15) ? 98n : to,
      // Campaigns cost the cluster its leader: few may have a term that counts.
      term: random.oneIn(12)
        ? term + random.below(3)
        : random.oneIn(3)
          ? 2 ** 45 + random.below(2 ** 30)
          : random.below(term + 1),
      logTerm: number(),
      index: number(),
      commit: number(),
      rejectHint: number(),
      reject: random.oneIn(2),
      entries: Array.from({ length: count }, (_, i) => ({
        type: random.below(4) as 0,
        term: number(),
        index: i,
        data: new Uint8Array(random.below(9)),
      })),
      context: new Uint8Array(random.below(20)),
    });
  }
}

/** The message, with a term that is past where it would have to be believed. */
function harmless(bytes: Uint8Array, scene: Scene): Uint8Array {
  let message: raftpb.Message;
  try {
    message = raftpb.Message.decode(bytes);
  } catch (error) {
    if (error instanceof WireError) return bytes;
    throw error;
  }
  const isBelieved =
    VOUCHING.has(message.type) && message.term >= scene.term && message.term < 2 ** 44;
  if (!isBelieved) return bytes;
  return (raftpb.Message as MessageType<raftpb.Message>).encode({ ...message, term: 1 });
}
