/** Bugs in what a member does among members of etcd. */
import type { CatalogueBug } from "../source-edit.ts";
import { SABOTAGE } from "./conditions.ts";

const AMONG_ETCD = { etcdMembers: 1, members: 3, faultPhaseMs: 2000 };
const JOINS = { ...AMONG_ETCD, maxMembers: 6, membershipEveryMs: 150, faultPhaseMs: 4000 };
/** Time for a member to heal itself, which it must not. */
const MAY_HEAL = { ...SABOTAGE, faultPhaseMs: 4000, corruptCheckMs: 300, faultEveryMs: 100_000 };

export const ETCD_BUGS: Readonly<Record<string, CatalogueBug>> = {
  "append-taken-for-following": {
    at: "transport/src/etcd-frames.ts#AppendStreamEncoder.encode",
    find: "$index === this.#place.index && $logTerm === this.#place.term && $logTerm === $term",
    put: "$index === this.#place.index",
    tests: ["packages/transport/test/etcd-frames.test.ts"],
    sim: AMONG_ETCD,
    seed: 3,
  },
  "alive-taken-for-a-message": {
    at: "transport/src/etcd-frames.ts#MessageStreamDecoder.take",
    find: "!$isAlive",
    put: "true",
    sim: AMONG_ETCD,
    seed: 1,
  },
  "each-lost-post-reported": {
    at: "transport/node/etcd-peer.ts#EtcdPeer.#postLost",
    find: "!this.#postsFail",
    put: "true",
    tests: ["packages/transport/test/contract.test.ts"],
    sim: "no",
  },
  "etcd-file-without-its-rules": {
    at: "store/src/etcd-file/import.ts#finish",
    find: "if ($followsEtcd) writeFollowsEtcd($backend);",
    put: "",
    tests: ["packages/store/test/follows-etcd.test.ts"],
    sim: { ...AMONG_ETCD, theme: "snapshots" },
    seed: 3,
  },
  "etcd-not-noticed-by-who-joins": {
    at: "member/src/membership/features.ts#hasEtcdMembers",
    find: "$found.includes(true) || ($found.includes(false) ? false : undefined)",
    put: "false",
    tests: ["packages/member/test/join.test.ts"],
    sim: JOINS,
    seed: 3,
  },
  "start-begun-again-forgets-etcd": {
    at: "member/src/bootstrap.ts#reopen",
    find: "$followsEtcd === $store.followsEtcd",
    put: "true",
    tests: ["packages/member/test/join.test.ts"],
    sim: "no",
  },
  "least-time-of-leases-not-kept": {
    at: "store/src/store.ts#Store.open",
    find: "if ($followsEtcd) $lessor.minTtlSeconds = $options.minLeaseTtlSeconds ?? 0;",
    put: "",
    tests: ["packages/store/test/follows-etcd.test.ts"],
    sim: { ...AMONG_ETCD, heartbeatMs: 100, electionMs: 1000 },
    seed: 2,
  },
  "alarm-ends-among-etcd": {
    at: "member/src/space/space-keeper.ts#SpaceKeeper.#disarm",
    find: "if (this.#parts.store.current.followsEtcd) return;",
    put: "",
    tests: ["packages/server/test/space.test.ts"],
    sim: "no",
  },
  "heals-itself-among-etcd": {
    at: "member/src/corruption/corruption.ts#Corruption.constructor",
    find: "!$config.selfHeal || $store.current.followsEtcd",
    put: "!$config.selfHeal",
    sim: { ...MAY_HEAL, etcdMembers: 1 },
    seed: 1,
  },
  "v2-attributes-passed-over": {
    at: "store/src/requests/v2-request.ts#fromV2",
    find: "$member !== undefined",
    put: "false",
    tests: ["packages/store/test/follows-etcd.test.ts"],
    sim: AMONG_ETCD,
    seed: 3,
  },
  "permission-replaced-among-etcd": {
    at: "store/src/auth/apply-auth.ts#roleGrantPermission",
    find: "$state.followsEtcd",
    put: "false",
    tests: ["packages/store/test/follows-etcd.test.ts"],
    sim: "no",
  },
  "asker-checked-among-etcd": {
    at: "store/src/apply.ts#permitted",
    find: "$auth.followsEtcd",
    put: "false",
    tests: ["packages/store/test/follows-etcd.test.ts"],
    sim: "no",
  },
};
