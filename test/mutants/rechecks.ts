/**
 * Places that look once more, after waiting: at the term, the revision, the store or the time that
 * what follows rests on. Each is planted without that look, and names the tests in which the world
 * changes in between: without such a test, the look could go and nobody would see it.
 */
import type { Mutant } from "./mutant.ts";

/** A look that is left out: the condition is never, or always, true. */
interface Recheck {
  /** What changes while the code waits. */
  readonly change: string;
  readonly file: string;
  /** Text that is in the file once; `«` and `»` stand around what is left out or replaced. */
  readonly place: string;
  /** What stands in place of the marked text. */
  readonly becomes: string;
  readonly tests: readonly string[];
}

const KEEPER = "member/src/lease/keeper.ts";
const KEEPER_TESTS = ["packages/member/test/lease-keeper.test.ts"];
const MARKS = "member/src/apply/log-marks.ts";
const MARKS_TESTS = ["packages/member/test/marks.test.ts"];
const JOBS_TESTS = ["packages/member/test/changed-meanwhile.test.ts"];

const RECHECKS: readonly Recheck[] = [
  {
    change: "another store is in place when a mark's flush is done",
    file: MARKS,
    place: "index <= previous« || store !== this.#parts.store.current») return;",
    becomes: "",
    tests: MARKS_TESTS,
  },
  {
    change: "a received snapshot overtakes a mark while it is written",
    file: MARKS,
    place: "if («index <= this.#lastMarkIndex») return;",
    becomes: "false",
    tests: MARKS_TESTS,
  },
  {
    change: "leadership ends between two slices of the count of leases",
    file: KEEPER,
    place: "if («this.#epoch !== epoch») return;\n    epoch.promoted = true;",
    becomes: "false",
    tests: KEEPER_TESTS,
  },
  {
    change: "leadership ends within the count of leases",
    file: KEEPER,
    place: "yield;\n      if («this.#epoch !== epoch») return;",
    becomes: "false",
    tests: KEEPER_TESTS,
  },
  {
    change: "leadership ends while a renewal waits for an expiry, a checkpoint or a grant",
    file: KEEPER,
    place: "return this.#refresh(epoch, lease, now);\n      if («this.#epoch !== epoch») throw",
    becomes: "false",
    tests: KEEPER_TESTS,
  },
  {
    change: "a confirmation comes for a leadership that is over",
    file: KEEPER,
    place: "if («this.#epoch !== epoch») throw new NotPrimaryError();\n        epoch.confirmedMs",
    becomes: "false",
    tests: KEEPER_TESTS,
  },
  {
    change: "a confirmation is older than an election timeout when the wait is over",
    file: KEEPER,
    place: "«now - epoch.confirmedMs >= this.#options.extendMs») await",
    becomes: "false",
    tests: KEEPER_TESTS,
  },
  {
    change: "a lease is noted again while a note of it is taken back",
    file: KEEPER,
    place: "if («lease.checkpoints === checkpoints») lease.checkpoints = 0;",
    becomes: "true",
    tests: KEEPER_TESTS,
  },
  {
    change: "leadership ends between two turns of revocations",
    file: KEEPER,
    place: "if («this.#epoch !== epoch») return;\n    const { maxInflightRevokes",
    becomes: "false",
    tests: KEEPER_TESTS,
  },
  {
    change: "a lease ends while ends are spread",
    file: KEEPER,
    place: "if («leases.get(lease.id) !== lease») continue;",
    becomes: "false",
    tests: KEEPER_TESTS,
  },
  {
    change: "leadership ends while the cluster's version is updated",
    file: "member/src/membership/version-monitor.ts",
    place: "if («epoch !== this.#epoch || »lifetime.hasEnded || !leader.isLeader) return;",
    becomes: "",
    tests: JOBS_TESTS,
  },
  {
    change: "leadership ends while members are asked for their versions",
    file: "member/src/membership/version-monitor.ts",
    place: "if («epoch !== this.#epoch || »lifetime.hasEnded) return;",
    becomes: "",
    tests: JOBS_TESTS,
  },
  {
    change: "the member ends while it publishes itself",
    file: "member/src/publication.ts",
    place: "if («this.#parts.lifetime.hasEnded») return;\n    this.#published",
    becomes: "false",
    tests: ["packages/server/test/publication.test.ts", ...JOBS_TESTS],
  },
  {
    change: "a snapshot begins to be installed while an entry is finished",
    file: "member/src/loop/loop-turns.ts",
    place: "if («this.isOn || »!this.#turns.areRunning)",
    becomes: "",
    tests: JOBS_TESTS,
  },
  {
    change: "leadership moves while a learner's progress is confirmed",
    file: "member/src/membership/reconfiguration.ts",
    place: 'if («now.role !== "leader"») throw',
    becomes: "false",
    tests: JOBS_TESTS,
  },
  {
    change: "keys are exchanged while a token is verified",
    file: "member/src/identity/jwt/jwt-tokens.ts",
    place: "if («keys === this.#keys») this.#cache.set",
    becomes: "true",
    tests: ["packages/server/test/auth-jwt.test.ts"],
  },
  {
    change: "users change while a serializable read runs",
    file: "member/src/identity/user-authority.ts",
    place: "if («identity.authRevision !== auth.revision») throw",
    becomes: "false",
    tests: ["packages/server/test/authority-reads.test.ts"],
  },
  {
    change: "users change while an operation of a request is judged",
    file: "store/src/auth/authorize.ts",
    place: '«if (authRevision < state.revision) return "AuthOldRevision";»',
    becomes: "",
    tests: ["packages/store/test/authorize.test.ts"],
  },
  {
    change: "users change while the keys of a lease are judged",
    file: "store/src/auth/authorize.ts",
    place: 'return «identity.authRevision < state.revision ? "AuthOldRevision" : »undefined;',
    becomes: "",
    tests: ["packages/store/test/authorize.test.ts"],
  },
  {
    change: "a password is changed while it is checked",
    file: "services/src/v3/auth.ts",
    place: "if («checkedRevision !== revision») continue;",
    becomes: "false",
    tests: ["packages/server/test/auth-login.test.ts", "packages/server/test/authority.test.ts"],
  },
  {
    change: "a store takes the place of the one that is compacted",
    file: "member/src/space/space.ts",
    place: "if («!this.#parts.store.current.mvcc.isCompacting») break;",
    becomes: "true",
    tests: ["packages/server/test/store-exchange.test.ts"],
  },
  {
    change: "a compaction passes a watch while history is read",
    file: "member/src/watch/change-feed.ts",
    place: "        «this.#dropCompacted(pass, mvcc);»\n        if (pass.size === 0) return;",
    becomes: "",
    tests: ["packages/server/test/watch.test.ts", "packages/server/test/watch-random.test.ts"],
  },
  {
    change: "the session of a client expires while it waits for a lock",
    file: "client/src/lock.ts",
    place: "if («kvs[0]?.createRevision !== entry.revision») throw",
    becomes: "false",
    tests: ["packages/client/test/lock.test.ts"],
  },
  {
    change: "the session of a call expires while it waits for a lock",
    file: "services/src/concurrency/lock-service.ts",
    place: "if («held.kvs[0]?.createRevision !== createRevision») throw",
    becomes: "false",
    tests: ["packages/server/test/lock.test.ts"],
  },
  {
    change: "an object changes while its update is made from the cache",
    file: "kube-storage/src/storage/etcd-store.ts",
    place: "if («fresh.revision === state.revision») throw error;",
    becomes: "false",
    tests: ["packages/kube-storage/test/storage-*.test.ts"],
  },
];

/** A recheck as a bug to plant. */
function planted({ change, file, place, becomes, tests }: Recheck): Mutant {
  const before = place.replace(/[«»]/g, "");
  const after = place.replace(/«[^»]*»/, () => becomes);
  return { name: `not looked at once more: ${change}`, file, before, after, tests, sim: "no" };
}

export const RECHECKED: readonly Mutant[] = RECHECKS.map(planted);
