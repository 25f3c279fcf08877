/**
 * What a member logs of changes of the configuration: etcd's messages with etcd's fields, which
 * scripts and dashboards look for. And what follows from a change: links, an election, a departure.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Logger, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { type ErrorName, errorOf, raftpb } from "@quorate/proto";
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
  const changed: boolean[] = [];
  let confState = raftpb.ConfState.create({ voters: [1n] });
  const store = {
    get position() {
      return { confState };
    },
    membership: {
      refusal: ({ nodeId }: raftpb.ConfChange) => (nodeId === 9n ? "MemberExist" : undefined),
    },
    applyConfChange(_entry: raftpb.Entry, change: unknown, next: raftpb.ConfState) {
      changed.push(change !== undefined);
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
  // The membership refuses this one.
  replay(ConfChangeAddNode, 9n);
  assert.deepEqual(recorded, [
    [1n, 2n],
    [1n, 2n, 3n],
    [1n, 3n],
    [1n, 3n],
  ]);
  assert.deepEqual(changed, [true, true, true, false]);
});

const memberOf = (id: bigint, url = `http://m${id}`): Member => ({
  id,
  name: "",
  peerUrls: [url],
  clientUrls: [],
  isLearner: false,
});

/** Member 1 of 1, 2 and 3, with what becomes of its links, its votes and its callers. */
function world(remotes: readonly Member[] = []) {
  const clock = new ManualClock();
  const members = new Map([1n, 2n, 3n].map((id) => [id, memberOf(id)]));
  const links = new Map<bigint, string>();
  const state = {
    refusal: undefined as ErrorName | undefined,
    isRemoved: false,
    voters: [1n, 2n, 3n],
    leader: 2n,
    hasEnded: false,
    campaigns: 0,
    wakes: 0,
    settled: [] as string[],
    departures: [] as object[],
    stored: [] as string[],
    malformed: 0,
  };
  const confState = () => raftpb.ConfState.create({ voters: state.voters });
  const set = (id: bigint, [url]: readonly string[]) => void links.set(id, url!);
  const configuration = new Configuration({
    memberId: 1n,
    clusterId: 1n,
    disconnectDelayMs: 1000,
    clock,
    maxLearners: 1,
    remotes,
    raft: {
      get confState() {
        return confState();
      },
      applyConfChange: confState,
      campaign: () => state.campaigns++,
    },
    store: {
      current: {
        membership: {
          refusal: () => state.refusal,
          member: (id: bigint) => members.get(id),
          members: () => [...members.values()],
          isRemoved: () => state.isRemoved,
        },
        applyConfChange: (_entry: raftpb.Entry, change: unknown) =>
          state.stored.push(change === undefined ? "no change" : "change"),
      },
    },
    transport: {
      peers: () => [...links.keys()].map((id) => ({ id })),
      addPeer: (id: bigint, urls: readonly string[]) => {
        assert.equal(links.has(id), false);
        set(id, urls);
      },
      updatePeer: (id: bigint, urls: readonly string[]) => {
        assert.equal(links.has(id), true);
        set(id, urls);
      },
      removePeer: (id: bigint) => links.delete(id),
    },
    logger: silentLogger,
    turns: { wake: () => state.wakes++ },
    lifetime: {
      get hasEnded() {
        return state.hasEnded;
      },
    },
    leader: {
      get leader() {
        return state.leader;
      },
    },
    proposals: {
      settle: (id: bigint, { error }: { error?: Error }) =>
        state.settled.push(`${id} ${error?.message ?? "ok"}`),
    },
    departure: { applied: (removal: object) => state.departures.push(removal) },
    malformed: () => state.malformed++,
  } as unknown as ConfigurationParts);
  const apply = (type: raftpb.ConfChangeType, nodeId: bigint, id = 0n) => {
    const context = encodeChangeContext({ member: memberOf(nodeId), isPromote: false });
    const data = raftpb.ConfChange.encode(raftpb.ConfChange.create({ type, nodeId, context, id }));
    configuration.apply(
      raftpb.Entry.create({ type: raftpb.EntryType.EntryConfChange, index: 9, term: 1, data }),
    );
  };
  return { clock, members, links, state, configuration, apply };
}

test("links follow the membership; that of a removed member stays for a while", async () => {
  const { clock, members, links, configuration, apply } = world();
  const linked = () => [...links].sort().map(([id, url]) => `${id} ${url}`);
  configuration.connectPeers();
  assert.deepEqual(linked(), ["2 http://m2", "3 http://m3"]);
  members.set(2n, memberOf(2n, "http://moved"));
  members.set(4n, memberOf(4n));
  apply(ConfChangeAddNode, 4n);
  assert.deepEqual(linked(), ["2 http://moved", "3 http://m3", "4 http://m4"]);
  members.delete(3n);
  apply(ConfChangeRemoveNode, 3n);
  await clock.advanceAsync(999);
  configuration.connectPeers();
  assert.deepEqual(linked(), ["2 http://moved", "3 http://m3", "4 http://m4"]);
  await clock.advanceAsync(1);
  assert.deepEqual(linked(), ["2 http://moved", "4 http://m4"]);
});

test("a member that joins has the peers that it fetched, until it is in the membership", () => {
  const { members, links, configuration } = world([memberOf(1n), memberOf(8n)]);
  members.delete(1n);
  configuration.connectPeers();
  assert.deepEqual([...links.keys()], [8n]);
  members.set(1n, memberOf(1n));
  configuration.connectPeers();
  assert.deepEqual([...links.keys()].sort(), [2n, 3n]);
  const alone = world();
  alone.members.delete(1n);
  alone.configuration.connectPeers();
  assert.deepEqual([...alone.links.keys()].sort(), [2n, 3n], "it has fetched none");
});

test("a removed member keeps the links that it has, and makes them where it has none", () => {
  const { members, links, state, configuration } = world();
  state.isRemoved = true;
  configuration.connectPeers();
  assert.deepEqual([...links.keys()], [2n, 3n]);
  members.delete(3n);
  configuration.connectPeers();
  assert.deepEqual([...links.keys()], [2n, 3n]);
});

test("its own removal is told to its departure, with the voters that are left", () => {
  const { state, apply } = world();
  state.voters = [2n, 3n];
  apply(ConfChangeRemoveNode, 1n);
  assert.deepEqual(state.departures, [{ index: 9, voters: 2 }]);
  apply(ConfChangeRemoveNode, 3n);
  assert.equal(state.departures.length, 1);
});

test("who proposed a change has its result, also where it is refused and changes nothing", () => {
  const { state, links, apply } = world();
  apply(ConfChangeAddNode, 2n, 7n);
  assert.equal(links.size, 2);
  links.clear();
  state.refusal = "MemberExist";
  apply(ConfChangeAddNode, 2n, 8n);
  apply(ConfChangeAddNode, 2n);
  assert.deepEqual(state.settled, ["7 ok", `8 ${errorOf("MemberExist").message}`]);
  assert.deepEqual(state.stored, ["change", "no change", "no change"]);
  assert.equal(links.size, 0);
});

test("a member that is left alone without a leader stands for election at the end of the turn", () => {
  const alone = (more: Partial<ReturnType<typeof world>["state"]>, endsMeanwhile = false) => {
    const { clock, state, apply } = world();
    Object.assign(state, { voters: [1n], leader: 0n }, more);
    apply(ConfChangeRemoveNode, 2n);
    assert.equal(state.campaigns, 0);
    if (endsMeanwhile) state.hasEnded = true;
    clock.endOneTurn();
    assert.equal(state.wakes, state.campaigns);
    return state.campaigns;
  };
  assert.equal(alone({}), 1);
  assert.equal(alone({ leader: 1n }), 0);
  assert.equal(alone({ voters: [2n] }), 0);
  assert.equal(alone({ voters: [1n, 2n] }), 0);
  assert.equal(alone({}, true), 0);
});

test("an entry that does not decode changes nothing, and one of Raft's own no member", () => {
  const { state, configuration } = world();
  const apply = (type: raftpb.EntryType, data: Uint8Array) =>
    configuration.apply(raftpb.Entry.create({ type, index: 9, term: 1, data }));
  apply(raftpb.EntryType.EntryConfChange, Uint8Array.of(0xff));
  assert.deepEqual([state.malformed, state.stored], [1, ["no change"]]);
  apply(raftpb.EntryType.EntryConfChangeV2, new Uint8Array(0));
  assert.deepEqual([state.malformed, state.stored.length], [1, 2]);
});
