/**
 * Every RPC and every path over HTTP, called by every kind of identity over a real socket: what it
 * answers are the tables of docs/operate/security/permissions.md. QUORATE_WRITE_DOCS=1 writes the
 * page; QUORATE_TEST_MEMBER=etcd asks the same of etcd, and says where it differs.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { RPC_RULES } from "@quorate/member";
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
import { AuthClient, enableAuth, type Grant, type Outcome, PASSWORD } from "../support/auth.ts";
import {
  gatewayCases,
  type HttpCase,
  KEY_PATHS,
  STATE_PATHS,
  sendHttp,
  shownHttp,
} from "../support/auth-paths.ts";
import { withCluster } from "../support/cluster.ts";
import { memberUnderTest } from "../support/executables.ts";

const PAGE = join(import.meta.dirname, "../../docs/operate/security/permissions.md");
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
  none: 101n,
  wrong: 102n,
  expired: 103n,
  bob: 104n,
  ann: 105n,
  root: 106n,
};
const STAYING_LEASE = 100n;
/** Those of the gateway's paths are further on, each path's by itself. */
const PATH_LEASES = 1000n;
const MOST_PATHS = 100n;

const put = { request: { case: "requestPut", value: { key, value: b("v") } } } as const;
const txn = TxnRequest.decode(TxnRequest.encode({ failure: [put] as never }));

/** A revision is compacted once. */
let nextCompaction = 1;

/** The request of each method: one that ann's permissions allow, if any do. */
const REQUESTS: Readonly<Record<string, (who: Who) => object>> = {
  [KVService.methods.Range.path]: () => ({ key }),
  [KVService.methods.RangeStream.path]: () => ({ key }),
  [KVService.methods.Put.path]: () => ({ key, value: b("v"), prevKv: true }),
  [KVService.methods.DeleteRange.path]: () => ({ key: b("ann/none") }),
  [KVService.methods.Txn.path]: () => txn,
  [KVService.methods.Compact.path]: () => ({ revision: nextCompaction++ }),
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
    name: b("ann/elect"),
    lease: STAYING_LEASE,
    value: b("v"),
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

/** Tokens end when a row takes long. */
async function renew(who: Who, client: AuthClient): Promise<void> {
  if (who === "ann" || who === "bob" || who === "root") await client.login(who);
}

/** The gateway's paths that revoke a lease, and the lease of an identity for each. */
function revocations(who: Who): [path: string, lease: bigint][] {
  return gatewayCases((path) => REQUESTS[path]?.(who) ?? {})
    .filter(({ rpc }) => rpc === LeaseService.methods.LeaseRevoke.path)
    .map(({ path }, i) => [path, LEASES[who] * MOST_PATHS + PATH_LEASES + BigInt(i)]);
}

/** The gateway's requests of an identity. */
function gatewayRequests(who: Who): readonly HttpCase[] {
  const leases = new Map(revocations(who));
  return gatewayCases((path) => REQUESTS[path]?.(who) ?? {})
    .filter(({ rpc }) => rpc !== AuthService.methods.AuthDisable.path)
    .map((one) => {
      const ID = leases.get(one.path);
      return ID === undefined ? one : { ...one, body: JSON.stringify({ ID: `${ID}` }) };
    });
}

async function answersOfPaths(
  address: string,
  clients: Record<Who, AuthClient>,
  rows: string[][],
): Promise<void> {
  const columns = IDENTITIES.map((who) => [...KEY_PATHS, ...gatewayRequests(who), ...STATE_PATHS]);
  for (const [i, { method, path }] of columns[0].entries()) {
    const row = [`${method} ${path}`];
    for (const [at, who] of IDENTITIES.entries()) {
      await renew(who, clients[who]);
      const { token } = clients[who];
      const sent = token === undefined ? undefined : `Bearer ${token}`;
      row.push(shownHttp(await sendHttp(address, columns[at][i], sent)));
    }
    rows.push(row);
  }
}

interface Answers {
  /** One row for each method, in the order of the services. */
  readonly rpcs: string[][];
  /** One row for each path. */
  readonly paths: string[][];
}

async function answers(address: string): Promise<Answers> {
  const clients = Object.fromEntries(
    IDENTITIES.map((who) => [who, new AuthClient(address)]),
  ) as Record<Who, AuthClient>;
  const rpcs: string[][] = [];
  const paths: string[][] = [];
  try {
    const { root } = clients;
    const grants: Grant[] = [
      ["ann/", "ann0", "readwrite"],
      // As docs/guide/v2.md has it.
      ["/v2/keys/ann/", "/v2/keys/ann0", "readwrite"],
      ["/v2/keys//ann", "", "read"],
    ];
    await enableAuth(root, { ann: grants, bob: [] });
    await clients.expired.login("ann");
    clients.wrong.token = "abcdefghijklmnop.1";
    await root.login("root");
    const ofPaths = IDENTITIES.flatMap((who) => revocations(who).map(([, ID]) => ID));
    for (const ID of [STAYING_LEASE, ...Object.values(LEASES), ...ofPaths]) {
      await root.call(LeaseService.methods.LeaseGrant, { ID, TTL: 600 });
      await root.call(KVService.methods.Put, { key: b(`ann/lease/${ID}`), lease: ID });
    }
    // The time that is tested; nothing uses the token meanwhile.
    await new Promise((resolve) => setTimeout(resolve, (TTL_SECONDS + 2) * 1000));
    if (memberUnderTest.name !== "etcd") {
      // A directory that others share is not made by a user of its own.
      const made = { method: "PUT", path: "/v2/keys/ann?dir=true" };
      await sendHttp(address, made, `Bearer ${await root.login("root")}`);
      await answersOfPaths(address, clients, paths);
    }
    const { AuthDisable } = AuthService.methods;
    const all: MethodDescriptor[] = services.flatMap(({ methods }) => Object.values(methods));
    for (const method of [...all.filter((one) => one !== AuthDisable), AuthDisable]) {
      const row = [method.path.slice(1)];
      for (const who of IDENTITIES) {
        const client = clients[who];
        await renew(who, client);
        const request = REQUESTS[method.path]?.(who) ?? {};
        row.push(shown(await client.try(method, request as never)));
      }
      rpcs.push(row);
    }
    return { rpcs, paths };
  } finally {
    for (const client of Object.values(clients)) client.close();
  }
}

function page({ rpcs, paths }: Answers): string {
  const needs = (path: string) => RPC_RULES.get(`/${path}`)?.needs ?? "";
  const lines = rpcs.map(
    ([path = "", ...cells]) => `| ${[path, needs(path), ...cells].join(" | ")} |`,
  );
  const heading = ["RPC", "needs", ...IDENTITIES.map((who) => HEADINGS[who])];
  const ofPaths = ["path", ...IDENTITIES.map((who) => HEADINGS[who])];
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
    "## Paths over HTTP",
    "",
    "The same for every path that leads to a key or a call: keys over HTTP, the API of etcd's version",
    "2 (`--enable-v2`), the JSON gateway, and pages about the member. A token is sent as",
    "`Authorization: Bearer`. `/v3/auth/disable` is called by gRPC alone, at the end. The version 2",
    "API has the permissions that [its page](../../guide/v2.md#users-and-roles) names, for the directory",
    "`ann`. Pages that show how the member does, and no key, need no user, as in etcd; the statistics",
    "of version 2 show what the status does, and need one.",
    "",
    `| ${ofPaths.join(" | ")} |`,
    `|${ofPaths.map(() => "---|").join("")}`,
    ...paths.map((cells) => `| ${cells.join(" | ")} |`),
    "",
  ].join("\n");
}

test("every RPC and path answers every identity as the documentation says", async () => {
  const isOurs = memberUnderTest.name !== "etcd";
  const flags = [`--auth-token-ttl=${TTL_SECONDS}`, "--bcrypt-cost=4"];
  if (isOurs) flags.push("--enable-v2");
  await withCluster({ size: 1, flags }, async ({ endpoints }) => {
    const written = page(await answers(endpoints[0].replace(/^https?:\/\//, "")));
    if (process.env["QUORATE_WRITE_DOCS"] === "1") writeFileSync(PAGE, written);
    const expected = readFileSync(PAGE, "utf8");
    if (isOurs) {
      assert.equal(written, expected);
      return;
    }
    const ours = expected.split("\n");
    const differences = written.split("\n").filter((line) => !ours.includes(line));
    console.log(differences.join("\n"));
  });
});
