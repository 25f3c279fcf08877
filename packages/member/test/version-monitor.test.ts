/** What members tell each other of themselves: their versions, and what entries they know. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { fromUtf8, membershippb } from "@quorate/proto";
import type { Store } from "@quorate/store";
import type { PeerAnswer, PeerCall } from "@quorate/transport";
import { type FeatureParts, FeatureSupport, featureEndpoints } from "../src/membership/features.ts";
import { VersionMonitor, type VersionMonitorParts } from "../src/membership/version-monitor.ts";

const json = (value: unknown): PeerAnswer => ({
  status: 200,
  body: fromUtf8(JSON.stringify(value)),
});

/** A leader of members 1 (itself), 2 and 3. @param server by member; undefined: no answer */
function monitor(server: Record<string, string | undefined>, decided?: string) {
  const clock = new ManualClock();
  const state = {
    decided,
    isLeader: true,
    hasEnded: false,
    timeouts: new Set<number>(),
    rounds: 0,
    proposed: [] as string[],
    higher: 0,
    fails: false,
  };
  const parts = {
    memberId: 1n,
    clock,
    logger: {
      ...silentLogger,
      warn: (text: string) => {
        if (/higher-versioned/.test(text)) state.higher++;
      },
    },
    call: async (url: string, path: string, _body: undefined, timeoutMs: number) => {
      assert.equal(path, "/version");
      state.timeouts.add(timeoutMs);
      if (url === "http://2") state.rounds++;
      const etcdserver = server[url.slice(-1)];
      if (etcdserver === undefined) throw new Error("no answer");
      return json({ etcdserver, etcdcluster: "not_decided" });
    },
    store: {
      current: {
        membership: {
          get clusterVersion() {
            return state.decided;
          },
          members: () => [1n, 2n, 3n].map((id) => ({ id, peerUrls: [`http://${id}`] })),
        },
      },
    },
    leader: {
      get isLeader() {
        return state.isLeader;
      },
    },
    lifetime: {
      get hasEnded() {
        return state.hasEnded;
      },
    },
    proposals: {
      propose: async (what: string, bytes: Uint8Array) => {
        assert.equal(what, "clusterVersionSet");
        state.proposed.push(membershippb.ClusterVersionSetRequest.decode(bytes).ver);
        if (state.fails) throw new Error("lost");
      },
    },
  } as unknown as VersionMonitorParts;
  return { clock, state, versions: new VersionMonitor(parts) };
}

async function proposedFor(
  server: Record<string, string | undefined>,
  decided?: string,
): Promise<readonly string[]> {
  const { clock, state, versions } = monitor(server, decided);
  versions.lead();
  await clock.settle();
  assert.deepEqual(state.timeouts, new Set([2000]));
  return state.proposed;
}

test("the cluster has the lowest version of its members", async () => {
  assert.deepEqual(await proposedFor({ 2: "3.7.1", 3: "3.9.0" }), ["3.7.0"]);
  assert.deepEqual(await proposedFor({ 2: "3.7.0", 3: "3.5.9" }), ["3.5.0"]);
  assert.deepEqual(await proposedFor({ 2: "3.7.0" }), ["3.0.0"], "one does not answer");
  assert.deepEqual(await proposedFor({ 2: "3.7.0", 3: "?" }), ["3.0.0"]);
});

test("a version that is decided is raised, never lowered, and only where all answer", async () => {
  assert.deepEqual(await proposedFor({ 2: "3.7.0", 3: "3.6.0" }, "3.5.0"), ["3.6.0"]);
  assert.deepEqual(await proposedFor({ 2: "3.7.0", 3: "3.6.0" }, "3.6.0"), []);
  assert.deepEqual(await proposedFor({ 2: "3.7.0", 3: "3.5.0" }, "3.6.0"), []);
  assert.deepEqual(await proposedFor({ 2: "3.7.0" }, "3.5.0"), []);
});

test("a member of a higher version is named", async () => {
  const { clock, state, versions } = monitor({ 2: "3.7.9", 3: "3.8.0" });
  versions.lead();
  await clock.settle();
  assert.equal(state.higher, 1);
});

test("the leader asks every 500 ms until the cluster has its version, then every 4 s", async () => {
  const { clock, state, versions } = monitor({ 2: "3.7.0", 3: "3.7.0" });
  state.fails = true;
  versions.lead();
  await clock.advanceAsync(499);
  assert.equal(state.rounds, 1);
  await clock.advanceAsync(1);
  assert.equal(state.rounds, 2, "also where the proposal failed");
  state.decided = "3.6.0";
  await clock.advanceAsync(500);
  assert.equal(state.rounds, 3);
  state.decided = "3.7.0";
  await clock.advanceAsync(500);
  assert.equal(state.rounds, 4);
  await clock.advanceAsync(3999);
  assert.equal(state.rounds, 4);
  await clock.advanceAsync(1);
  assert.equal(state.rounds, 5);
  versions.stop();
  await clock.advanceAsync(60_000);
  assert.equal(state.rounds, 5);
  versions.lead();
  await clock.settle();
  state.isLeader = false;
  await clock.advanceAsync(60_000);
  assert.equal(state.rounds, 7, "the round after it led no more was the last");
});

test("a member that ends asks no more, and proposes nothing", async () => {
  const { clock, state, versions } = monitor({ 2: "3.7.0", 3: "3.7.0" });
  state.hasEnded = true;
  versions.lead();
  await clock.advanceAsync(60_000);
  assert.deepEqual([state.rounds, state.proposed], [1, []]);
});

/** Member 1, which asks 2 and 3 for the roles of tokens. */
function support(answers: Record<string, PeerAnswer | undefined>) {
  const clock = new ManualClock();
  const state = { asked: [] as string[], settled: false };
  const call: PeerCall = async (url, path, _body, timeoutMs) => {
    assert.deepEqual([path, timeoutMs], ["/quorate/features", 2000]);
    state.asked.push(url);
    const answer = answers[url];
    if (answer === undefined) throw new Error("no answer");
    return answer;
  };
  const store = {
    get current() {
      return {
        auth: { hasTokenRoles: state.settled, notesCreations: false },
        membership: {
          members: () => [1n, 2n, 3n].map((id) => ({ id, peerUrls: [`http://${id}`] })),
        },
      } as unknown as Store;
    },
  } as FeatureParts["store"];
  const parts = { memberId: 1n, clock, call, store };
  return { clock, state, answers, features: new FeatureSupport("token-roles", parts) };
}

const KNOWS = json({ features: ["token-roles"] });

test("entries that not all members know are refused, and the others asked again a second later", async () => {
  const { clock, state, answers, features } = support({ "http://2": KNOWS });
  const refused = { message: /not every member of the cluster is known to accept/ };
  const [first, same] = [features.ready(), features.ready()];
  assert.equal(first, same, "one question at a time");
  await assert.rejects(first!, refused);
  assert.deepEqual(state.asked, ["http://2", "http://3"]);
  await clock.advanceAsync(999);
  await assert.rejects(features.ready()!, refused);
  assert.equal(state.asked.length, 2);
  for (const unknown of [{ features: [] }, { features: "token-roles" }, {}]) {
    answers["http://3"] = json(unknown);
    await clock.advanceAsync(1000);
    await assert.rejects(features.ready()!, refused);
  }
  assert.deepEqual(state.asked.slice(2), ["http://3", "http://3", "http://3"]);
  answers["http://3"] = KNOWS;
  await clock.advanceAsync(1000);
  await features.ready();
  assert.equal(features.isSettled, false);
  state.settled = true;
  assert.equal(features.ready(), undefined);
  assert.equal(state.asked.length, 6);
});

test("a member says what entries it knows", async () => {
  const [[path, handler]] = [...featureEndpoints(() => ({ followsEtcd: true }))];
  const answer = await handler(undefined!);
  assert.equal(path, "/quorate/features");
  assert.deepEqual(
    [answer!.status, JSON.parse(String(answer!.body))],
    [200, { features: ["token-roles", "user-creations"], followsEtcd: true }],
  );
});
