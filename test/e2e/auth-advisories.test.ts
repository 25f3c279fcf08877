/**
 * The attacks of etcd's public advisories over real sockets: each is refused. The list of all, with
 * their tests: docs/operate/security/advisories.md.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import {
  AuthService,
  ClusterService,
  fromUtf8,
  KVService,
  LeaseService,
  MaintenanceService,
  TxnRequest,
} from "@quorate/proto";
import { type AuthClient, enableAuth, soon, Watch, withClients } from "../support/auth.ts";
import {
  makeAuthority,
  makeLocalCertificate,
  makeRevocationList,
  type TestCertificate,
} from "../support/certs.ts";
import { quorate } from "../support/executables.ts";
import { TestMember } from "../support/member.ts";
import { freePorts } from "../support/ports.ts";
import { scratchDirectory } from "../support/scratch.ts";

const { Range, Put, DeleteRange, Txn, Compact } = KVService.methods;
const { UserAdd } = AuthService.methods;
const { LeaseGrant, LeaseRevoke, LeaseKeepAlive, LeaseTimeToLive, LeaseLeases } =
  LeaseService.methods;
const b = fromUtf8;
const USER_EMPTY = "etcdserver: user name is empty";
const DENIED = "etcdserver: permission denied";
const secret = b("secret");
const op = (name: string, value: object) => ({ request: { case: name, value } });

/** A transaction around another, so deep. */
function around(inner: object, depth: number): object {
  if (depth === 0) return inner;
  const value = around(inner, depth - 1);
  return { success: [{ request: { case: "requestTxn", value } }], failure: [] };
}

/** A member with users, keys of root's, and a client without a user. */
async function attacked(body: (user: AuthClient, admin: AuthClient) => Promise<void>) {
  await withClients(1, async ([admin], open) => {
    await enableAuth(admin, {
      ann: [["ann/", "ann0", "readwrite"]],
      one: [["k", "", "readwrite"]],
      writer: [["w", "", "write"]],
    });
    await admin.login("root");
    for (const key of ["k", "k2", "w", "secret"]) {
      await admin.call(Put, { key: b(key), value: b("of root") });
    }
    await body(open(0), admin);
  });
}

async function denied(what: string, call: Promise<{ code: number; text: string }>): Promise<void> {
  const { code, text } = await call;
  assert.deepEqual([code, text], [7, DENIED], what);
}

test("a transaction within transactions does not go around permission", async () => {
  await attacked(async (user) => {
    await user.login("ann");
    const compare = {
      key: secret,
      target: 0,
      result: 0,
      targetUnion: { case: "version", value: 1 },
    };
    for (const inner of [
      { compare: [compare], success: [], failure: [] },
      { compare: [], success: [op("requestRange", { key: secret })], failure: [] },
      { compare: [], success: [], failure: [op("requestPut", { key: secret, value: b("x") })] },
      { compare: [], success: [], failure: [op("requestDeleteRange", { key: secret })] },
      { success: [op("requestDeleteRange", { key: b("ann/"), rangeEnd: b("\0") })], failure: [] },
    ]) {
      for (let depth = 0; depth < 3; depth++) {
        const request = TxnRequest.decode(TxnRequest.encode(around(inner, depth) as never));
        await denied(`depth ${depth}`, user.try(Txn, request));
      }
    }
  });
});

test("prev_kv and leases need permission, in transactions too", async () => {
  await attacked(async (user, admin) => {
    await user.login("writer");
    await denied("prev_kv", user.try(Put, { key: b("w"), value: b("x"), prevKv: true }));
    await denied("prev_kv", user.try(DeleteRange, { key: b("w"), prevKv: true }));
    const { ID } = await admin.call(LeaseGrant, { TTL: 600 });
    await admin.call(Put, { key: secret, value: b("leased"), lease: ID });
    for (const value of [
      { key: b("w"), value: b("x"), prevKv: true },
      { key: b("w"), value: b("x"), lease: ID },
    ]) {
      const request = { success: [op("requestPut", value)], failure: [] };
      const whole = TxnRequest.decode(TxnRequest.encode(request as never));
      await denied("in a transaction", user.try(Txn, whole));
    }
    await denied("a lease of others", user.try(Put, { key: b("w"), value: b("x"), lease: ID }));
    await denied("its end", user.try(LeaseRevoke, { ID }));
    await denied("its keys", user.try(LeaseTimeToLive, { ID, keys: true }));
    await denied("its renewal", user.try(LeaseKeepAlive, { ID }));
    await denied("all leases", user.try(LeaseLeases, {}));
  });
});

test("a permission for one key opens no range, and no watch of one", async () => {
  await attacked(async (user) => {
    await user.login("one");
    await user.call(Range, { key: b("k") });
    for (const rangeEnd of ["\0", "k3", "l"]) {
      const range = { key: b("k"), rangeEnd: b(rangeEnd) };
      await denied("a range", user.try(Range, range));
      await denied("a stale range", user.try(Range, { ...range, serializable: true }));
      const watch = new Watch(user, "k", rangeEnd);
      await soon(() => watch.responses.length > 0);
      assert.ok(watch.cancelReason?.includes(DENIED));
      watch.close();
    }
  });
});

test("maintenance and cluster calls need a user", async () => {
  await attacked(async (user) => {
    const { Status, Defragment, Snapshot, HashKV, Hash, Alarm, MoveLeader } =
      MaintenanceService.methods;
    const { MemberList, MemberAdd } = ClusterService.methods;
    for (const [method, request] of [
      [Status, {}],
      [Defragment, {}],
      [Snapshot, {}],
      [HashKV, {}],
      [Hash, {}],
      [Alarm, {}],
      [MoveLeader, {}],
      [MemberList, {}],
      [MemberAdd, { peerURLs: ["http://127.0.0.9:9"] }],
      [LeaseTimeToLive, { ID: 1n }],
      [LeaseLeases, {}],
      [Compact, { revision: 2 }],
      [UserAdd, { name: "x", password: "y" }],
    ] as const) {
      const { code, text } = await user.try(method, request as never);
      assert.deepEqual([code, text], [3, USER_EMPTY], method.path);
    }
  });
});

test("many wrong passwords of a user from an address are refused", async () => {
  await attacked(async (user) => {
    const { Authenticate } = AuthService.methods;
    const wrong = { name: "one", password: "wrong" };
    const answers = [];
    for (let i = 0; i < 12; i++) answers.push((await user.try(Authenticate, wrong)).text);
    assert.equal(answers[0], "etcdserver: authentication failed, invalid user ID or password");
    assert.equal(answers[11], "etcdserver: too many failed logins: try again later");
    await user.login("ann");
  });
});

test("a revoked certificate is refused on the port of gRPC and on that of HTTP", async (t) => {
  const dir = scratchDirectory("quorate-revoked-", t);
  const ca = makeAuthority();
  const [server, revoked, other] = ["server", "revoked", "other"].map((name) =>
    makeLocalCertificate(ca, name),
  );
  const [grpc, http, peer] = await freePorts(3);
  const write = (name: string, content: string | Uint8Array): string => {
    writeFileSync(join(dir, name), content);
    return join(dir, name);
  };
  const [clientUrl, peerUrl] = [`https://127.0.0.1:${grpc}`, `http://127.0.0.1:${peer}`];
  const dataDir = join(dir, "data");
  const member = new TestMember({
    name: "solo",
    command: quorate.command,
    flags: [
      "--name=solo",
      `--data-dir=${dataDir}`,
      `--initial-cluster=solo=${peerUrl}`,
      `--listen-client-urls=${clientUrl}`,
      `--advertise-client-urls=${clientUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--listen-client-http-urls=https://127.0.0.1:${http}`,
      `--cert-file=${write("cert.pem", server.certPem)}`,
      `--key-file=${write("key.pem", server.keyPem)}`,
      "--client-cert-auth",
      `--trusted-ca-file=${write("ca.pem", ca.certPem)}`,
      `--client-crl-file=${write("crl", makeRevocationList(ca, [revoked]))}`,
    ],
    env: {},
    // Where its health is asked for.
    clientUrl: `https://127.0.0.1:${http}`,
    peerUrl,
    dataDir,
    logFile: join(dir, "log"),
    identity: { ca: ca.certPem, cert: other.certPem, key: other.keyPem },
  });
  t.after(() => member.kill());
  member.start();
  await member.waitReady();
  const isServed = (port: number, who: TestCertificate, protocol: string): Promise<boolean> =>
    new Promise((resolve) => {
      const identity = { ca: ca.certPem, cert: who.certPem, key: who.keyPem };
      const socket = connect({ host: "127.0.0.1", port, ...identity, ALPNProtocols: [protocol] });
      socket.once("secureConnect", () => socket.write("GET /version HTTP/1.1\r\nHost: x\r\n\r\n"));
      socket.once("data", () => {
        resolve(true);
        socket.destroy();
      });
      for (const end of ["close", "error"] as const) socket.once(end, () => resolve(false));
    });
  for (const [port, protocol] of [
    [grpc, "h2"],
    [http, "http/1.1"],
  ] as const) {
    assert.equal(await isServed(port, other, protocol), true, `${protocol}, a good certificate`);
    assert.equal(await isServed(port, revoked, protocol), false, `${protocol}, a revoked one`);
  }
  await member.terminate();
});
