/** Users over HTTP: how a request proves one, what it costs, and what is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Credentials } from "@quorate/http-kv";
import { KEPT_LOGIN_MS, MAX_KEPT_LOGINS } from "@quorate/http-kv/testing";
import { callerOf, LoginLimits } from "@quorate/member";
import { KEPT_GUESSES, USER_FAILURES } from "@quorate/member/testing";
import { AuthService, fromUtf8 } from "@quorate/proto";
import { contextOf, ExchangeCaller, ServiceCalls } from "@quorate/services";
import { KvClient } from "./support/http-kv.ts";
import { callAs, enableAuth, login, PASSWORD } from "./support/users.ts";
import { plainSecrets, World } from "./support/world.ts";

const basic = (name: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`,
});

/** A member with the users root and ann, whose passwords are counted when they are checked. */
async function started(flags: readonly string[] = []) {
  const world = new World(1, flags);
  const [node] = world.nodes;
  const { hasher } = plainSecrets(world.random);
  const checks = { count: 0 };
  const verify = (password: string, hash: string) => {
    checks.count++;
    return hasher.verify(password, hash);
  };
  node.secrets = { hasher: { ...hasher, verify } };
  await world.startAll();
  const member = node.member!;
  const root = await enableAuth(world, member, "ann");
  return { world, member, root, checks, kv: new KvClient(world, member) };
}

test("Basic, Bearer, a token alone; none, and wrong ones", async () => {
  const { world, member, kv } = await started();
  const token = await world.settled(login(member, "ann"));
  for (const request of [
    { headers: basic("ann", PASSWORD) },
    { headers: { authorization: `Bearer ${token}` } },
    { headers: { authorization: token } },
  ]) {
    const put = await kv.ask("PUT", "/kv/ann/k", { ...request, body: "1" });
    assert.ok(put.status === 201 || put.status === 204, put.text);
    assert.equal((await kv.ask("GET", "/kv/ann/k", request)).status, 200);
    assert.equal((await kv.ask("GET", "/kv/ann/?prefix", request)).status, 200);
    assert.equal((await kv.ask("GET", "/kv/ann/?prefix&after=zzz", request)).status, 200);
    for (const target of ["/kv/bob/k", "/kv/?prefix", "/watch/bob"]) {
      const denied = await kv.ask("GET", target, request);
      assert.equal(denied.status, 403, target);
      assert.match(denied.text, /"code":"PermissionDenied"/);
    }
    assert.equal((await kv.ask("PUT", "/kv/bob/k", { ...request, body: "" })).status, 403);
    assert.equal((await kv.ask("DELETE", "/kv/bob/k", request)).status, 403);
    const txn = '[{"put":"bob/k","value":""}]';
    assert.equal((await kv.ask("POST", "/txn", { ...request, body: txn })).status, 403);
  }
  for (const headers of [
    {},
    basic("ann", "wrong"),
    basic("eve", PASSWORD),
    { authorization: "Basic !" },
    { authorization: `Basic ${Buffer.from("no colon").toString("base64")}` },
    { authorization: `Basic ${"A".repeat(100_000)}` },
    { authorization: "Bearer forged" },
  ]) {
    const refused = await kv.ask("GET", "/kv/ann/k", { headers });
    assert.equal(refused.status, 401, refused.text);
    assert.match(refused.headers["www-authenticate"], /^Basic realm="quorate"/);
  }
  await world.stopAll();
});

test("a password is checked once a while for a client, and again when its token has ended", async () => {
  const { world, member, root, kv, checks } = await started();
  const headers = basic("ann", PASSWORD);
  const ask = async (peerAddress: string) =>
    (await kv.ask("PUT", "/kv/ann/k", { headers, peerAddress, body: "1" })).status;
  const before = checks.count;
  for (let i = 0; i < 5; i++) assert.ok((await ask(`10.0.0.1:${i}`))! < 300);
  assert.equal(checks.count, before + 1);
  // Requests at one time share a login, and what was checked just now is not checked again.
  const logins = member.auth.tokens.size;
  const crowd = [...Array(50)].map(() =>
    kv.start("GET", "/kv/ann/k", { headers, peerAddress: "10.0.0.2:1" }),
  );
  await world.settled(Promise.all(crowd.map(({ done }) => done)));
  assert.ok(crowd.every(({ status }) => status === 200));
  assert.deepEqual([member.auth.tokens.size, checks.count], [logins + 1, before + 1]);
  await world.run(KEPT_LOGIN_MS + 1);
  assert.ok((await ask("10.0.0.1:1"))! < 300);
  assert.equal(checks.count, before + 2);
  // The user's tokens end with the password.
  const { UserChangePassword } = AuthService.methods;
  await world.settled(callAs(member, root, UserChangePassword, { name: "ann", password: "new" }));
  assert.equal(await ask("10.0.0.1:1"), 401);
  const renewed = { headers: basic("ann", "new"), peerAddress: "10.0.0.1:1", body: "2" };
  assert.equal((await kv.ask("PUT", "/kv/ann/k", renewed)).status, 204);
  // The same password, set again, ends the token that is kept; the client does not see it.
  await world.settled(callAs(member, root, UserChangePassword, { name: "ann", password: "new" }));
  assert.equal((await kv.ask("PUT", "/kv/ann/k", renewed)).status, 204);
  // So may any change of users and roles.
  const { UserAdd } = AuthService.methods;
  await world.settled(callAs(member, root, UserAdd, { name: "eve", password: PASSWORD }));
  assert.equal((await kv.ask("PUT", "/kv/ann/k", renewed)).status, 204);
  const stream = kv.start("GET", "/watch/ann/k", renewed);
  await world.run(5);
  assert.equal(stream.status, 200);
  await world.stopAll();
});

test("a client that guesses is refused before a hash, and does not lock out who has proved itself", async () => {
  const { world, kv, checks } = await started();
  const ask = async (password: string, port: number, host = "10.0.0.9") =>
    (
      await kv.ask("GET", "/kv/ann/k", {
        headers: basic("ann", password),
        peerAddress: `${host}:${port}`,
      })
    ).status;
  assert.equal(await ask(PASSWORD, 1), 404);
  for (let i = 0; i < USER_FAILURES.burst; i++) assert.equal(await ask(`wrong ${i}`, 2), 401);
  const { count } = checks;
  const refused = await kv.ask("GET", "/kv/ann/k", {
    headers: basic("ann", "wrong"),
    peerAddress: "10.0.0.9:2",
  });
  assert.equal(refused.status, 429);
  assert.match(refused.text, /too many failed logins/);
  // The connection that has shown the password, and another one of that client's.
  assert.deepEqual([await ask(PASSWORD, 1), await ask(PASSWORD, 3)], [404, 404]);
  // Who goes on guessing does not find out which password is right.
  for (let i = 0; i < KEPT_GUESSES.burst; i++) assert.equal(await ask(`wrong ${i}`, 2), 429);
  assert.deepEqual([await ask(PASSWORD, 2), await ask(PASSWORD, 4)], [429, 429]);
  // A session stays one, longer than its password is believed without a check ...
  for (let at = 0; at <= KEPT_LOGIN_MS; at += KEPT_LOGIN_MS / 20) {
    assert.deepEqual([await ask(PASSWORD, 1), await ask(PASSWORD, 3)], [404, 404]);
    for (let i = 0; i < 3; i++) await ask("wrong", 2);
    await world.run(KEPT_LOGIN_MS / 20);
    for (let i = 0; i < 3; i++) await ask("wrong", 2);
  }
  assert.equal(await ask(PASSWORD, 1), 404);
  // ... until the connection shows another password: the port may have another owner.
  assert.equal(await ask("wrong", 1), 429);
  assert.equal(await ask(PASSWORD, 1), 429);
  assert.ok(checks.count >= count);
  assert.equal(await ask(PASSWORD, 1, "10.0.0.8"), 404);
  await world.stopAll();
});

test("logins through a trusted proxy are counted for the client that it names, through others not", async () => {
  const { world, kv } = await started(["--trusted-proxies=10.0.0.5,CN=edge"]);
  const ask = async (
    user: string,
    password: string,
    forwarded: string,
    peerAddress = "10.0.0.5:1",
  ): Promise<number | undefined> => {
    const headers = { ...basic(user, password), "x-forwarded-for": forwarded };
    return (await kv.ask("GET", "/kv/ann/k", { headers, peerAddress })).status;
  };
  for (let i = 0; i < 110; i++)
    assert.equal(await ask(`user ${i}`, "wrong", "192.0.2.1"), i < 100 ? 401 : 429);
  for (let i = 0; i < 10; i++) await ask("root", "wrong", "192.0.2.1");
  assert.equal(await ask("root", PASSWORD, "192.0.2.1"), 429);
  assert.equal(await ask("root", PASSWORD, "192.0.2.2"), 404);
  // What a client has sent to its proxy stands before what the proxy has added.
  assert.equal(await ask("ann", PASSWORD, "192.0.2.77, 192.0.2.1"), 429);
  // What is no address does not count, nor does what another client says.
  for (let i = 0; i < 100; i++) await ask(`user ${i}`, "wrong", `192.0.2.${i}`, "10.0.0.6:1");
  assert.equal(await ask("ann", PASSWORD, "192.0.2.200", "10.0.0.6:1"), 429);
  for (let i = 0; i < 100; i++) await ask(`user ${i}`, "wrong", `no address ${i}`);
  assert.equal(await ask("ann", PASSWORD, "no address"), 429);
  await world.stopAll();
});

test("a user that may only write puts without a condition", async () => {
  const { world, member, root, kv } = await started();
  const { RoleGrantPermission } = AuthService.methods;
  const perm = { permType: 1, key: fromUtf8("inbox"), rangeEnd: new Uint8Array(0) };
  await world.settled(callAs(member, root, RoleGrantPermission, { name: "ann", perm }));
  const headers = basic("ann", PASSWORD);
  const put = await kv.ask("PUT", "/kv/inbox", { headers, body: "1" });
  assert.equal(put.status, 204, "it does not learn whether the key was new");
  assert.equal(put.headers["quorate-version"], undefined);
  assert.match(put.headers["etag"], /^"\d+"$/);
  const condition = { ...headers, "if-match": "*" };
  assert.equal((await kv.ask("PUT", "/kv/inbox", { headers: condition, body: "" })).status, 403);
  assert.equal((await kv.ask("DELETE", "/kv/inbox", { headers })).status, 204);
  await world.stopAll();
});

test("the certificate's common name is the caller's, and no header of the request is more", () => {
  const fields = { token: "forged", "grpcgateway-accept": "x", hasleader: "true" };
  const headers = new Map(Object.entries(fields));
  const head = { method: "GET", path: "/", query: "", headers, peerAddress: "10.0.0.1:1" };
  const caller = callerOf(contextOf("/x", new ExchangeCaller({ ...head, peerCommonName: "ann" })));
  assert.deepEqual([caller.commonName, caller.client], ["ann", "CN ann"]);
  assert.equal(caller.token, undefined);
  for (const name of headers.keys()) assert.equal(caller.metadata(name), undefined);
});

test("without users, credentials are not looked at", async () => {
  const world = new World(1);
  await world.startAll();
  const kv = new KvClient(world, world.nodes[0].member!);
  for (const headers of [basic("ann", "x"), { authorization: "Bearer x" }])
    assert.equal((await kv.ask("PUT", "/kv/k", { headers, body: "" })).status! < 300, true);
  await world.stopAll();
});

test("kept logins are bounded", async () => {
  const world = new World(0);
  const { Authenticate } = AuthService.methods;
  const token = Authenticate.responseType.encode({ token: "t" });
  const services = { unary: new Map([[Authenticate.path, () => token]]), stream: new Map() };
  const credentials = new Credentials({
    clock: world.clock,
    calls: new ServiceCalls(services, { clock: world.clock, observer: undefined }),
    isEnforced: () => true,
    logins: new LoginLimits(),
    hashKey: fromUtf8("key"),
  });
  for (let i = 0; i < MAX_KEPT_LOGINS + 10; i++) {
    const headers = new Map(Object.entries(basic(`user ${i}`, "x")));
    const head = { method: "GET", path: "/", query: "", headers, peerCommonName: undefined };
    await credentials.prove(new ExchangeCaller({ ...head, peerAddress: "10.0.0.1:1" }));
  }
  assert.equal(credentials.size, MAX_KEPT_LOGINS);
});
