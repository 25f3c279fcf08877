/**
 * Every RPC, called by every kind of identity over a real socket: what it answers is the table of
 * docs/security/permissions.md. QUORATE_WRITE_DOCS=1 writes the table; QUORATE_TEST_MEMBER=etcd
 * asks the same of etcd, and says where it differs.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  AuthService,
  ClusterService,
  ElectionService,
  fromUtf8,
  KVService,
  LeaseService,
  LockService,
  MaintenanceService,
  type MethodDescriptor,
  services,
  TxnRequest,
  WatchService,
} from "@quorate/proto";
import { RPC_RULES } from "@quorate/server";
import { AuthClient, enableAuth, type Outcome, PASSWORD } from "../support/auth.ts";
import { withCluster } from "../support/cluster.ts";
import { memberUnderTest } from "../support/executables.ts";

const PAGE = join(import.meta.dirname, "../../docs/security/permissions.md");
const TTL_SECONDS = 3;
const CODES = [
  ..."OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS".split(" "),
  ..."PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE".split(" "),
  ..."UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED".split(" "),
];

const IDENTITIES = ["none", "wrong", "expired", "bob", "ann", "root"] as const;
type Who = (typeof IDENTITIES)[number];
const HEADINGS: Readonly<Record<Who, string>> = {
  none: "no token",
  wrong: "wrong token",
  expired: "expired token",
  bob: "user without permission",
  ann: "user with permission",
  root: "root",
};

const b = fromUtf8;
const key = b("ann/k");
/** Leases with a key of ann's: each may be revoked once. */
const LEASES: Readonly<Record<Who, bigint>> = {
  ...{ none: 101n, wrong: 102n, expired: 103n },
  ...{ bob: 104n, ann: 105n, root: 106n },
};
const STAYING_LEASE = 100n;

const put = { request: { case: "requestPut", value: { key, value: b("v") } } } as const;
const txn = TxnRequest.decode(TxnRequest.encode({ failure: [put] as never }));

/** The request of each method: one that ann's permissions allow, if any do. */
const REQUESTS: Readonly<Record<string, (who: Who) => object>> = {
  [KVService.methods.Range.path]: () => ({ key }),
  [KVService.methods.RangeStream.path]: () => ({ key }),
  [KVService.methods.Put.path]: () => ({ key, value: b("v"), prevKv: true }),
  [KVService.methods.DeleteRange.path]: () => ({ key: b("ann/none") }),
  [KVService.methods.Txn.path]: () => txn,
  [KVService.methods.Compact.path]: () => ({ revision: 1 }),
  [WatchService.methods.Watch.path]: () => ({
    requestUnion: { case: "createRequest", value: { key, rangeEnd: new Uint8Array(0) } },
  }),
  [LeaseService.methods.LeaseGrant.path]: () => ({ TTL: 600 }),
  [LeaseService.methods.LeaseRevoke.path]: (who) => ({ ID: LEASES[who] }),
  [LeaseService.methods.LeaseKeepAlive.path]: () => ({ ID: STAYING_LEASE }),
  [LeaseService.methods.LeaseTimeToLive.path]: () => ({ ID: STAYING_LEASE, keys: true }),
  [LeaseService.methods.LeaseLeases.path]: () => ({}),
  [ClusterService.methods.MemberAdd.path]: () => ({ peerURLs: ["no url"] }),
  [ClusterService.methods.MemberRemove.path]: () => ({ ID: 1n }),
  [ClusterService.methods.MemberUpdate.path]: () => ({ ID: 1n, peerURLs: ["http://127.0.0.9:9"] }),
  [ClusterService.methods.MemberPromote.path]: () => ({ ID: 1n }),
  [ClusterService.methods.MemberList.path]: () => ({}),
  [MaintenanceService.methods.Alarm.path]: () => ({ action: 2, alarm: 1 }),
  [MaintenanceService.methods.MoveLeader.path]: () => ({ targetID: 1n }),
  [MaintenanceService.methods.Downgrade.path]: () => ({ action: 2 }),
  [AuthService.methods.Authenticate.path]: () => ({ name: "ann", password: PASSWORD }),
  [AuthService.methods.UserAdd.path]: () => ({ name: "root", password: "x" }),
  [AuthService.methods.UserGet.path]: () => ({ name: "ann" }),
  [AuthService.methods.UserDelete.path]: () => ({ name: "absent" }),
  [AuthService.methods.UserChangePassword.path]: () => ({ name: "absent", password: "x" }),
  [AuthService.methods.UserGrantRole.path]: () => ({ user: "absent", role: "ann" }),
  [AuthService.methods.UserRevokeRole.path]: () => ({ name: "absent", role: "ann" }),
  [AuthService.methods.RoleAdd.path]: () => ({ name: "ann" }),
  [AuthService.methods.RoleGet.path]: () => ({ role: "ann" }),
  [AuthService.methods.RoleDelete.path]: () => ({ role: "absent" }),
  [AuthService.methods.RoleGrantPermission.path]: () => ({ name: "absent", perm: { key } }),
  [AuthService.methods.RoleRevokePermission.path]: () => ({ role: "absent", key }),
  [LockService.methods.Lock.path]: () => ({ name: b("ann/lock"), lease: STAYING_LEASE }),
  [LockService.methods.Unlock.path]: () => ({ key: b("ann/lock/none") }),
  [ElectionService.methods.Campaign.path]: () => ({
    ...{ name: b("ann/elect"), lease: STAYING_LEASE, value: b("v") },
  }),
  [ElectionService.methods.Proclaim.path]: () => ({ leader: { key: b("ann/x"), rev: 1 } }),
  [ElectionService.methods.Leader.path]: () => ({ name: b("ann/none") }),
  [ElectionService.methods.Observe.path]: () => ({ name: b("ann/elect") }),
  [ElectionService.methods.Resign.path]: () => ({ leader: { key: b("ann/x"), rev: 1 } }),
};

function shown({ code, text, response }: Outcome): string {
  const watch = response as { canceled?: boolean; cancelReason?: string } | undefined;
  if (code === 0 && watch?.canceled === true) return `cancelled: ${watch.cancelReason}`;
  return code === 0 ? "OK" : `${CODES[code]}: ${text}`;
}

/** One row for each method, in the order of the services. */
async function answers(address: string): Promise<string[][]> {
  const clients = Object.fromEntries(
    IDENTITIES.map((who) => [who, new AuthClient(address)]),
  ) as Record<Who, AuthClient>;
  const rows: string[][] = [];
  try {
    const { root } = clients;
    await enableAuth(root, { ann: [["ann/", "ann0", "readwrite"]], bob: [] });
    await clients.expired.login("ann");
    clients.wrong.token = "abcdefghijklmnop.1";
    await root.login("root");
    for (const ID of [STAYING_LEASE, ...Object.values(LEASES)]) {
      await root.call(LeaseService.methods.LeaseGrant, { ID, TTL: 600 });
      await root.call(KVService.methods.Put, { key: b(`ann/lease/${ID}`), lease: ID });
    }
    // The time that is tested; nothing uses the token meanwhile.
    await new Promise((resolve) => setTimeout(resolve, (TTL_SECONDS + 2) * 1000));
    const { AuthDisable } = AuthService.methods;
    const all: MethodDescriptor[] = services.flatMap(({ methods }) => Object.values(methods));
    for (const method of [...all.filter((one) => one !== AuthDisable), AuthDisable]) {
      const row = [method.path.slice(1)];
      for (const who of IDENTITIES) {
        const client = clients[who];
        // Tokens end when a row takes long.
        if (who === "ann" || who === "bob" || who === "root") await client.login(who);
        const request = REQUESTS[method.path]?.(who) ?? {};
        row.push(shown(await client.try(method, request as never)));
      }
      rows.push(row);
    }
    return rows;
  } finally {
    for (const client of Object.values(clients)) client.close();
  }
}

function page(rows: readonly (readonly string[])[]): string {
  const needs = (path: string) => RPC_RULES.get(`/${path}`)?.needs ?? "";
  const lines = rows.map(
    ([path = "", ...cells]) => `| ${[path, needs(path), ...cells].join(" | ")} |`,
  );
  const heading = ["RPC", "needs", ...IDENTITIES.map((who) => HEADINGS[who])];
  return [
    "# Permissions of every RPC",
    "",
    "What each RPC needs while users and roles are enforced, and what it answers to each kind of",
    "identity: a test (test/e2e/auth-rpcs.test.ts) calls every one over a socket and writes this",
    "page. The user with permission may read and write the keys below `ann/`. An answer that is not",
    "about permission (such as a member that is not found) means that the call was permitted.",
    "",
    `| ${heading.join(" | ")} |`,
    `|${heading.map(() => "---|").join("")}`,
    ...lines,
    "",
  ].join("\n");
}

test("every RPC answers every identity as the documentation says", async () => {
  const options = { size: 1, flags: [`--auth-token-ttl=${TTL_SECONDS}`, "--bcrypt-cost=4"] };
  await withCluster(options, async ({ endpoints }) => {
    const rows = await answers(endpoints[0].replace(/^https?:\/\//, ""));
    const written = page(rows);
    if (process.env["QUORATE_WRITE_DOCS"] === "1") writeFileSync(PAGE, written);
    const expected = readFileSync(PAGE, "utf8");
    if (memberUnderTest.name !== "etcd") {
      assert.equal(written, expected);
      return;
    }
    const ours = expected.split("\n");
    const differences = written.split("\n").filter((line) => !ours.includes(line));
    console.log(differences.join("\n"));
  });
});
