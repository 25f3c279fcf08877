/**
 * Users and roles on three members over real sockets: enabling them under load, and permission that
 * goes while watches and leases run.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  AuthService,
  fromUtf8,
  KeyValue as KV,
  KVService,
  LeaseService,
  toUtf8,
} from "@quorate/proto";
import {
  AuthClient,
  addressOf,
  CHEAP_LOGINS,
  enableAuth,
  grantOf,
  soon,
  Watch,
  withClients,
} from "../support/auth.ts";
import { withCluster } from "../support/cluster.ts";

const { Range, Put } = KVService.methods;
const { RoleRevokePermission, UserRevokeRole, UserDelete, UserAdd, AuthDisable } =
  AuthService.methods;
const { LeaseGrant, LeaseKeepAlive } = LeaseService.methods;
const b = fromUtf8;
const USER_EMPTY = "etcdserver: user name is empty";
const DENIED = "etcdserver: permission denied";
const NO_PASSWORD = "auth: authentication failed, password was given for no password user";

test("auth is enabled under load: no acknowledged write is lost, no anonymous call is served after", async () => {
  await withClients(3, async (clients, open) => {
    const [admin] = clients;
    const acknowledged = new Map<string, string>();
    let isOver = false;
    let enabledAt = Number.POSITIVE_INFINITY;
    const late: string[] = [];
    /** Writes with the user's token once one is demanded. */
    const user = async (client: AuthClient, name: string) => {
      for (let i = 0; !isOver; i++) {
        const [key, value] = [`load/${name}/${i % 50}`, String(i)];
        const { code, text } = await client.try(Put, { key: b(key), value: b(value) });
        if (code === 0) acknowledged.set(key, value);
        else if (text === USER_EMPTY) await client.login("load");
        else assert.match(text, /revision of auth store is old/);
      }
    };
    /** Calls without a token, and notes those that were begun after auth and were served. */
    const anonymous = async (client: AuthClient, i: number) => {
      while (!isOver) {
        const begun = performance.now();
        const calls = [
          client.try(Put, { key: b("load/anonymous"), value: b("x") }),
          client.try(Range, { key: b("load/"), rangeEnd: b("load0"), limit: 1 }),
        ];
        for (const [n, { code }] of (await Promise.all(calls)).entries()) {
          if (code === 0 && begun > enabledAt) late.push(`member ${i}, call ${n}`);
        }
      }
    };
    const running = clients.flatMap((_, i) => [user(open(i), `u${i}`), anonymous(open(i), i)]);
    await soon(() => acknowledged.size > 60);
    await enableAuth(admin, { load: [["load/", "load0", "readwrite"]] });
    enabledAt = performance.now();
    await admin.login("root");
    const before = acknowledged.get("load/u2/0");
    await soon(() => acknowledged.get("load/u2/0") !== before);
    isOver = true;
    await Promise.all(running);
    assert.deepEqual(late, []);
    for (const client of clients) {
      client.token = admin.token;
      const all = await client.call(Range, { key: b("load/u"), rangeEnd: b("load/v") });
      const found = new Map(all.kvs.map((bytes) => keyAndValue(bytes)));
      for (const [key, value] of acknowledged) assert.equal(found.get(key), value, key);
      // A stale read is refused as soon as the member has the entry, which it has by now.
      const stale = await client.try(Range, { key: b("load/"), serializable: true }, "");
      assert.notEqual(stale.code, 0);
    }
  });
});

/** Key and value of a record. */
function keyAndValue(bytes: Uint8Array): [string, string] {
  const range = { kv: bytes };
  const decoded = KV.decode(range.kv);
  return [toUtf8(decoded.key), toUtf8(decoded.value)];
}

/** Resolves when it is so; fails if that takes longer than a second. */
async function withinASecond(what: string, isSo: () => boolean): Promise<void> {
  const begun = performance.now();
  await soon(isSo);
  const tookMs = performance.now() - begun;
  assert.ok(tookMs < 1000, `${what} took ${tookMs.toFixed(0)} ms`);
}

/** Users with watches and lease streams, that lose permission. */
async function takenFrom(
  name: string,
  users: readonly AuthClient[],
  admin: AuthClient,
  take: () => Promise<unknown>,
): Promise<void> {
  for (const client of users) await client.login(name);
  const watches = users.flatMap((client) => [
    new Watch(client, `${name}/k`),
    new Watch(client, `${name}/`, `${name}0`),
  ]);
  const { ID } = await users[0].call(LeaseGrant, { TTL: 600 });
  await users[0].call(Put, { key: b(`${name}/k`), value: b("v"), lease: ID });
  const ends: string[] = [];
  const streams = users.map((client) => {
    const stream = client.stream(LeaseKeepAlive);
    let renewed = 0;
    stream.on("data", () => renewed++);
    stream.on("error", () => {});
    stream.on("status", ({ details }: { details: string }) => ends.push(details));
    stream.write(Buffer.from(LeaseKeepAlive.requestType.encode({ ID })));
    return { count: () => renewed };
  });
  await soon(() => watches.every((watch) => watch.eventCount > 0));
  await soon(() => streams.every(({ count }) => count() > 0));
  // Root's watch of the same goes on.
  const roots = new Watch(admin, `${name}/`, `${name}0`);
  await soon(() => roots.isCreated);
  await take();
  await withinASecond(`the end of ${name}'s watches`, () =>
    watches.every(({ cancelReason }) => cancelReason?.includes(DENIED)),
  );
  await withinASecond(`the end of ${name}'s lease streams`, () => ends.length === users.length);
  for (const end of ends) assert.match(end, /permission denied|invalid auth token/);
  await admin.call(Put, { key: b(`${name}/k`), value: b("later") });
  await soon(() => roots.eventCount > 0);
  assert.deepEqual(
    watches.map((watch) => watch.eventCount),
    watches.map(() => 1),
  );
  roots.close();
}

test("watches and lease streams end within a second when permission, role or user go", async () => {
  await withClients(3, async (clients, open) => {
    const [admin] = clients;
    // Watches from before auth, without a user.
    const anonymous = clients.map((client) => new Watch(client, "a", "z"));
    await soon(() => anonymous.every(({ isCreated }) => isCreated));
    await enableAuth(admin, {
      ann: [["ann/", "ann0", "readwrite"]],
      bob: [["bob/", "bob0", "readwrite"]],
      eve: [["eve/", "eve0", "readwrite"]],
    });
    await withinASecond("the end of anonymous watches", () =>
      anonymous.every(({ cancelReason }) => cancelReason?.includes(DENIED)),
    );
    await admin.login("root");
    for (const [name, revoke] of [
      [
        "ann",
        {
          method: RoleRevokePermission,
          request: { role: "ann", key: b("ann/"), rangeEnd: b("ann0") },
        },
      ],
      ["bob", { method: UserRevokeRole, request: { name: "bob", role: "bob" } }],
      ["eve", { method: UserDelete, request: { name: "eve" } }],
    ] as const) {
      const users = clients.map((_, i) => open(i));
      await takenFrom(name, users, admin, () => admin.call(revoke.method, revoke.request as never));
    }
    // Without auth, all is open again; tokens have ended.
    await admin.call(AuthDisable, {});
    await clients[1].call(Range, { key: b("ann/k") });
  });
});

test("a token of one member is accepted by all at once, and ends with its user's password", async () => {
  await withClients(3, async (clients) => {
    const [admin] = clients;
    await enableAuth(admin, { ann: [["ann/", "ann0", "readwrite"]] });
    await admin.login("root");
    for (let i = 0; i < 20; i++) {
      const from = clients[i % 3];
      const saved = from.token;
      const token = await from.login("ann");
      from.token = saved;
      for (const to of clients) {
        const { code, text } = await to.try(Put, { key: b("ann/k"), value: b("v") }, token);
        assert.equal(code, 0, text);
        const read = await to.try(Range, { key: b("ann/k"), serializable: true }, token);
        assert.equal(read.code, 0, read.text);
      }
      if (i < 19) continue;
      const { UserChangePassword } = AuthService.methods;
      await admin.call(UserChangePassword, { name: "ann", password: "another" });
      const after = await clients[0].try(Range, { key: b("ann/k") }, token);
      assert.equal(after.text, "etcdserver: invalid auth token");
      const made = await clients[1].try(Range, { key: b("ann/k") }, "madeupmadeupmade.999999");
      assert.equal(made.text, "etcdserver: invalid auth token");
      await clients[2].login("ann", "another");
    }
    await admin.call(...grantOf("ann", ["z", "", "read"]));
    await clients[2].login("ann", "another");
    await clients[2].call(Range, { key: b("z") });
  });
});

test("with --client-cert-auth the common name of a certificate is the user", async () => {
  await withCluster(
    { size: 1, tls: true, flags: CHEAP_LOGINS },
    async ({ endpoints, identity, certs }) => {
      const address = addressOf(endpoints[0]);
      const name = new X509Certificate(readFileSync(certs!.client)).subject.replace(/^CN=/, "");
      const client = new AuthClient(address, identity);
      const root = new AuthClient(address, identity);
      try {
        const { UserGrantRole, RoleAdd } = AuthService.methods;
        await client.call(UserAdd, { name, options: { noPassword: true } });
        await client.call(RoleAdd, { name: "cert" });
        await client.call(...grantOf("cert", ["cert/", "cert0", "readwrite"]));
        await client.call(UserGrantRole, { user: name, role: "cert" });
        await enableAuth(client, {});
        await client.call(Put, { key: b("cert/k"), value: b("v") });
        const other = await client.try(Put, { key: b("k"), value: b("v") });
        assert.equal(other.text, DENIED);
        const { Authenticate } = AuthService.methods;
        const login = await client.try(Authenticate, { name, password: "" });
        assert.equal(login.text, NO_PASSWORD);
        // A token goes before the certificate.
        await root.login("root");
        await root.call(Put, { key: b("k"), value: b("v") });
        const watch = new Watch(client, "cert/", "cert0");
        await soon(() => watch.isCreated);
        await root.call(UserDelete, { name });
        await withinASecond(
          "the end of its watch",
          () => watch.cancelReason?.includes(DENIED) ?? false,
        );
        const gone = await client.try(Range, { key: b("cert/k") });
        assert.equal(gone.text, DENIED);
      } finally {
        client.close();
        root.close();
      }
    },
  );
});
