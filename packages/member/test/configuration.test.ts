/**
 * What a member logs of changes of the configuration: etcd's messages with etcd's fields, which
 * scripts and dashboards look for.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Logger, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { raftpb } from "@quorate/proto";
import { encodeChangeContext, type Member, type Store } from "@quorate/store";
import { Configuration, type ConfigurationParts } from "../src/apply/configuration.ts";

const { ConfChangeAddNode, ConfChangeAddLearnerNode, ConfChangeRemoveNode, ConfChangeUpdateNode } =
  raftpb.ConfChangeType;

/** A configuration whose membership is what `members` says, and the lines that it logs. */
function configurationOf(members: Map<bigint, Member>) {
  const lines: [msg: string, fields: unknown][] = [];
  const logger: Logger = { ...silentLogger, info: (msg, fields) => lines.push([msg, fields]) };
  const confState = raftpb.ConfState.create({ voters: [1n] });
  const membership = {
    refusal: () => undefined,
    member: (id: bigint) => members.get(id),
    members: () => [...members.values()],
    isRemoved: () => false,
  };
  const parts = {
    memberId: 1n,
    clusterId: 0xc1n,
    disconnectDelayMs: 1000,
    clock: new ManualClock(),
    maxLearners: 1,
    remotes: [],
    raft: { confState, applyConfChange: () => confState },
    store: { current: { membership, applyConfChange() {} } },
    transport: { peers: () => [], addPeer() {}, removePeer() {}, updatePeer() {} },
    logger,
    leader: { leader: 1n },
  };
  return { lines, configuration: new Configuration(parts as unknown as ConfigurationParts) };
}

test("changes are logged under etcd's messages and fields", () => {
  const member: Member = {
    id: 0xabn,
    name: "",
    peerUrls: ["http://a:2380"],
    clientUrls: [],
    isLearner: true,
  };
  const members = new Map([[member.id, member]]);
  const { lines, configuration } = configurationOf(members);
  const apply = (type: raftpb.ConfChangeType, isPromote = false) =>
    configuration.apply(
      raftpb.Entry.create({
        type: raftpb.EntryType.EntryConfChange,
        index: lines.length + 1,
        term: 1,
        data: raftpb.ConfChange.encode(
          raftpb.ConfChange.create({
            type,
            nodeId: member.id,
            context: encodeChangeContext({ member, isPromote }),
          }),
        ),
      }),
    );
  apply(ConfChangeAddLearnerNode);
  apply(ConfChangeAddNode, true);
  apply(ConfChangeUpdateNode);
  apply(ConfChangeRemoveNode);
  const whose = { "cluster-id": "c1", "local-member-id": "1" };
  const urls = ["http://a:2380"];
  assert.deepEqual(lines, [
    [
      "added member",
      {
        ...whose,
        "added-peer-id": "ab",
        "added-peer-peer-urls": urls,
        "added-peer-is-learner": true,
      },
    ],
    ["promote member", { ...whose, "promoted-member-id": "ab" }],
    [
      "updated member",
      {
        ...whose,
        "updated-remote-peer-id": "ab",
        "updated-remote-peer-urls": urls,
        "updated-remote-peer-is-learner": true,
      },
    ],
    ["removed member", { ...whose, "removed-remote-peer-id": "ab" }],
  ]);
});

test("an entry that is applied once more records the configuration as of itself", () => {
  const { configuration } = configurationOf(new Map());
  const recorded: bigint[][] = [];
  let confState = raftpb.ConfState.create({ voters: [1n] });
  const store = {
    get position() {
      return { confState };
    },
    membership: { refusal: () => undefined },
    applyConfChange(_entry: raftpb.Entry, _change: unknown, next: raftpb.ConfState) {
      confState = next;
      recorded.push(next.voters);
    },
  };
  const replay = (type: raftpb.ConfChangeType, nodeId: bigint) => {
    const member = { id: nodeId, name: "", peerUrls: [], clientUrls: [], isLearner: false };
    const context = encodeChangeContext({ member, isPromote: false });
    const data = raftpb.ConfChange.encode(raftpb.ConfChange.create({ type, nodeId, context }));
    const entry = raftpb.Entry.create({ type: raftpb.EntryType.EntryConfChange, data });
    configuration.replay(store as unknown as Store, entry);
  };
  replay(ConfChangeAddNode, 2n);
  replay(ConfChangeAddNode, 3n);
  replay(ConfChangeRemoveNode, 2n);
  assert.deepEqual(recorded, [
    [1n, 2n],
    [1n, 2n, 3n],
    [1n, 3n],
  ]);
});
