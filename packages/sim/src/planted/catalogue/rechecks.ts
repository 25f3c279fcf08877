/**
 * Places that look once more, after waiting: at the term, the revision, the store or the time that
 * what follows rests on. Each is planted without that look, and names the tests in which the world
 * changes in between: without such a test, the look could go and nobody would see it.
 */
import type { CatalogueBug } from "../source-edit.ts";

const KEEPER_TESTS = ["packages/member/test/lease-keeper.test.ts"];
const MARKS_TESTS = ["packages/member/test/marks.test.ts"];
const JOBS_TESTS = ["packages/member/test/changed-meanwhile.test.ts"];

/** A look that is left out, by what changes while the code waits. */
const RECHECKS: Readonly<Record<string, Omit<CatalogueBug, "sim">>> = {
  "another store is in place when a mark's flush is done": {
    at: "member/src/apply/persistence.ts#LogMarks.#mark",
    find: "$index <= $previous || $store !== this.#parts.store.current",
    put: "$index <= $previous",
    tests: MARKS_TESTS,
  },
  "a received snapshot overtakes a mark while it is written": {
    at: "member/src/apply/persistence.ts#LogMarks.#mark",
    find: "$index <= this.#lastMarkIndex",
    put: "false",
    tests: MARKS_TESTS,
  },
  "leadership ends between two slices of the count of leases": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#promote",
    find: "this.#epoch !== $epoch",
    put: "false",
    tests: KEEPER_TESTS,
  },
  "leadership ends within the count of leases": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#countAll",
    find: "this.#epoch !== $epoch",
    put: "false",
    tests: KEEPER_TESTS,
  },
  "leadership ends while a renewal waits for an expiry, a checkpoint or a grant": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#renewSlowly",
    find: "this.#epoch !== $epoch",
    put: "false",
    tests: KEEPER_TESTS,
  },
  "a confirmation comes for a leadership that is over": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#confirmed",
    find: "this.#epoch !== $epoch",
    put: "false",
    tests: KEEPER_TESTS,
  },
  "a confirmation is older than an election timeout when the wait is over": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#renewSlowly",
    find: "$now - $epoch.confirmedMs >= this.#options.extendMs",
    put: "false",
    tests: KEEPER_TESTS,
  },
  "a lease is noted again while a note of it is taken back": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#takeCheckpointBack",
    find: "$lease.checkpoints === $checkpoints",
    put: "true",
    tests: KEEPER_TESTS,
  },
  "leadership ends between two turns of revocations": {
    at: "member/src/lease/keeper.ts#LeaseKeeper.#revokeExpired",
    find: "this.#epoch !== $epoch",
    put: "false",
    tests: KEEPER_TESTS,
  },
  "leadership ends while the cluster's version is updated": {
    at: "member/src/membership/version-monitor.ts#VersionMonitor.#watch",
    find: "$epoch !== this.#epoch || $lifetime.hasEnded",
    put: "$lifetime.hasEnded",
    tests: JOBS_TESTS,
  },
  "leadership ends while members are asked for their versions": {
    at: "member/src/membership/version-monitor.ts#VersionMonitor.#update",
    find: "$epoch !== this.#epoch || $lifetime.hasEnded",
    put: "$lifetime.hasEnded",
    tests: JOBS_TESTS,
  },
  "front-ends are closed while one waits to be started again": {
    at: "front/node/front-threads.ts#FrontThreads.#ended",
    find: "if (!this.#isClosing) void this.#startOne()",
    put: "void this.#startOne()",
    tests: ["packages/front/test/threads.test.ts"],
  },
  "the member ends while it publishes itself": {
    at: "member/src/publication.ts#Publication.publish",
    find: `
      if (this.#parts.lifetime.hasEnded) return;
      this.#published = true;`,
    put: "this.#published = true;",
    tests: ["packages/server/test/publication.test.ts", ...JOBS_TESTS],
  },
  "a snapshot begins to be installed while an entry is finished": {
    at: "member/src/loop/turns.ts#Standstill.run",
    find: "this.isOn || !this.#turns.areRunning",
    put: "!this.#turns.areRunning",
    tests: JOBS_TESTS,
  },
  "leadership moves while a learner's progress is confirmed": {
    at: "member/src/membership/reconfiguration.ts#Reconfiguration.#leaderStatus",
    find: '$now.role !== "leader"',
    put: "false",
    tests: JOBS_TESTS,
  },
  "keys are exchanged while a token is verified": {
    at: "member/src/identity/jwt/jwt-tokens.ts#JwtTokens.#verify",
    find: "$keys === this.#keys",
    put: "true",
    tests: ["packages/server/test/auth-jwt.test.ts"],
  },
  "users change while a serializable read runs": {
    at: "member/src/identity/user-authority.ts#UserAuthority.#confirm",
    find: "$identity.authRevision !== $auth.revision",
    put: "false",
    tests: ["packages/server/test/authority-reads.test.ts"],
  },
  "users change while an operation of a request is judged": {
    at: "store/src/auth/authorize.ts#keysVerdict",
    find: 'if ($authRevision < $state.revision) return "AuthOldRevision";',
    put: "",
    tests: ["packages/store/test/authorize.test.ts"],
  },
  "users change while the keys of a lease are judged": {
    at: "store/src/auth/authorize.ts#leaseVerdict",
    find: '$identity.authRevision < $state.revision ? "AuthOldRevision" : undefined',
    put: "undefined",
    tests: ["packages/store/test/authorize.test.ts"],
  },
  "a password is changed while it is checked": {
    at: "services/src/v3/auth.ts#authenticate",
    find: "$checkedRevision !== $revision",
    put: "false",
    tests: ["packages/server/test/auth-login.test.ts", "packages/server/test/authority.test.ts"],
  },
  "a store takes the place of the one that is compacted": {
    at: "member/src/space/space.ts#Space.compacted",
    find: "!this.#parts.store.current.mvcc.isCompacting",
    put: "true",
    tests: ["packages/server/test/store-exchange.test.ts"],
  },
  "a compaction passes a watch while history is read": {
    at: "member/src/watch/change-feed.ts#ChangeFeed.#runDeep",
    find: `
      this.#dropCompacted($pass, $mvcc);
      if ($pass.size === 0) return;`,
    put: "if ($pass.size === 0) return;",
    tests: ["packages/server/test/watch.test.ts", "packages/server/test/watch-random.test.ts"],
  },
  "the session of a client expires while it waits for a lock": {
    at: "client/src/lock.ts#acquire",
    find: "$kvs[0]?.createRevision !== $entry.revision",
    put: "false",
    tests: ["packages/client/test/lock.test.ts"],
  },
  "the session of a call expires while it waits for a lock": {
    at: "services/src/concurrency/lock-service.ts#lock",
    find: "$held.kvs[0]?.createRevision !== $createRevision",
    put: "false",
    tests: ["packages/server/test/lock.test.ts"],
  },
  "the cache is filled again while a watch waits for the store's revision": {
    at: "kube-storage/src/cacher/cacher.ts#Cacher.watch",
    find: "!this.#readiness.isReady || this.#readiness.generation !== $generation",
    put: "!this.#readiness.isReady",
    tests: ["packages/kube-storage/test/cacher/reflector.test.ts"],
  },
  "the cache is lost while a watch waits for the store's revision": {
    at: "kube-storage/src/cacher/cacher.ts#Cacher.watch",
    find: "!this.#readiness.isReady || this.#readiness.generation !== $generation",
    put: "this.#readiness.generation !== $generation",
    tests: ["packages/kube-storage/test/cacher/reflector.test.ts"],
  },
  "an object changes while its update is made from the cache": {
    at: "kube-storage/src/storage/etcd-store.ts#EtcdStore.#freshState",
    find: "$fresh.revision === $state.revision",
    put: "false",
    tests: ["packages/kube-storage/test/storage-*.test.ts"],
  },
};

export const RECHECK_BUGS: Readonly<Record<string, CatalogueBug>> = Object.fromEntries(
  Object.entries(RECHECKS).map(([change, bug]) => [
    `not looked at once more: ${change}`,
    { ...bug, sim: "no" },
  ]),
);
