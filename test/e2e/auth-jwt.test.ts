/** Signed tokens at real members: own ones, and those of an identity provider whose keys rotate. */
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { AuthService, fromUtf8, GrpcCode, KVService } from "@quorate/proto";
import { SignJWT } from "jose";
import { AuthClient, enableAuth } from "../support/auth.ts";
import { startCluster } from "../support/cluster.ts";
import { until } from "../support/until.ts";

const { Put, Range } = KVService.methods;
const request = { key: fromUtf8("app/1") };

interface Key {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly jwk: object;
}

function makeKey(kid: string): Key {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = { ...publicKey.export({ format: "jwk" }), kid, use: "sig" };
  return { kid, privateKey, jwk };
}

/** A token whose claim lists roles. */
function issueRoles({ kid, privateKey }: Key, sub: string, groups: unknown): Promise<string> {
  return new SignJWT({ sub, groups })
    .setProtectedHeader({ alg: "ES256", kid })
    .setExpirationTime("1h")
    .sign(privateKey);
}

/** A token as an identity provider issues it. */
function issue({ kid, privateKey }: Key, email: string, audience = "quorate"): Promise<string> {
  return new SignJWT({ email })
    .setProtectedHeader({ alg: "ES256", kid })
    .setAudience(audience)
    .setExpirationTime("1h")
    .sign(privateKey);
}

describe("signed tokens", () => {
  test("roles in a claim: no user record, and audit lines with the roles", async () => {
    const dir = mkdtempSync(join(tmpdir(), "quorate-jwt-"));
    const [jwks, log] = [join(dir, "jwks.json"), join(dir, "audit.log")];
    const key = makeKey("k");
    writeFileSync(jwks, JSON.stringify({ keys: [key.jwk] }));
    const cluster = await startCluster({
      size: 1,
      flags: [
        `--auth-token=jwt,sign-method=ES256,jwks=${jwks}`,
        "--auth-jwt-user-claim=sub",
        "--auth-jwt-roles-claim=groups",
        `--audit-log=${log}`,
        "--bcrypt-cost=4",
      ],
    });
    const client = new AuthClient(cluster.members[0].clientAddress);
    const put = async (sub: string, groups: unknown, name = "app/1"): Promise<number> => {
      const token = await issueRoles(key, sub, groups);
      return (await client.try(Put, { key: fromUtf8(name), value: fromUtf8("v") }, token)).code;
    };
    try {
      const root = await issueRoles(key, "eve", ["root"]);
      const { RoleAdd, RoleGrantPermission, UserAdd, UserGrantRole, AuthEnable } =
        AuthService.methods;
      await client.call(RoleAdd, { name: "app" });
      const perm = { permType: 2, key: fromUtf8("app/"), rangeEnd: fromUtf8("app0") };
      await client.call(RoleGrantPermission, { name: "app", perm });
      await client.call(UserAdd, { name: "root", options: { noPassword: true } });
      await client.call(UserGrantRole, { user: "root", role: "root" });
      await client.call(AuthEnable, {});
      assert.equal(await put("ann", ["app", "other"]), GrpcCode.OK);
      assert.equal(await put("ann", "other app"), GrpcCode.OK);
      assert.equal(await put("ann", ["app"], "z"), GrpcCode.PermissionDenied);
      assert.equal(await put("ann", undefined), GrpcCode.PermissionDenied);
      assert.equal(await put("root", []), GrpcCode.PermissionDenied);
      assert.equal(await put("ann", [7]), GrpcCode.Unauthenticated);
      const many = Array.from({ length: 65 }, (_, i) => `r${i}`);
      assert.equal(await put("ann", many), GrpcCode.Unauthenticated);
      assert.equal((await client.try(Put, request, root)).code, GrpcCode.OK);
      const line = '"user":"ann","proof":"token","roles":["app","other"],"address"';
      await until("a line has the roles", () => readFileSync(log, "utf8").includes(line));
    } finally {
      client.close();
      await cluster.destroy();
      rmSync(dir, { recursive: true });
    }
  });

  test("own tokens, tokens of a provider, and a rotation of its keys without a restart", async () => {
    const dir = mkdtempSync(join(tmpdir(), "quorate-jwt-"));
    const [own, jwks] = [join(dir, "own.pem"), join(dir, "jwks.json")];
    const pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
    writeFileSync(own, pem);
    const replace = (text: string): void => {
      writeFileSync(`${jwks}.new`, text);
      renameSync(`${jwks}.new`, jwks);
    };
    const publish = (...keys: readonly Key[]): void =>
      replace(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }));
    const [old, next] = [makeKey("2025"), makeKey("2026")];
    publish(old);
    const cluster = await startCluster({
      size: 2,
      flags: [
        `--auth-token=jwt,sign-method=EdDSA,priv-key=${own},jwks=${jwks},ttl=10m`,
        "--auth-jwt-user-claim=email",
        "--auth-jwt-audience=quorate",
        "--bcrypt-cost=4",
      ],
    });
    const [one, two] = cluster.members.map(({ clientAddress }) => new AuthClient(clientAddress));
    const reload = (): void => cluster.members[0].signal("SIGHUP");
    const code = async (token: string, client = one): Promise<number> =>
      (await client.try(Range, request, token)).code;
    const metric = async (name: string): Promise<number> => {
      const text = await (await fetch(`${cluster.endpoints[0]}/metrics`)).text();
      return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? ([0-9.]+)$`, "m").exec(text)?.[1]);
    };
    try {
      await enableAuth(one, { "ann@example.org": [["app/", "app0", "readwrite"]] });
      const login = await one.login("ann@example.org");
      assert.equal(login.split(".").length, 3);
      await one.call(Put, { ...request, value: fromUtf8("v") });
      // Another member has never seen it.
      assert.equal(await code(login, two), GrpcCode.OK);

      const ann = await issue(old, "ann@example.org");
      assert.equal(await code(ann), GrpcCode.OK);
      const checks = await metric("quorate_auth_jwt_verifications_total");
      for (let i = 0; i < 10; i++) assert.equal(await code(ann), GrpcCode.OK);
      assert.equal(await metric("quorate_auth_jwt_verifications_total"), checks);
      // A user that does not exist: etcd says PermissionDenied here (docs/reference/divergence.md).
      assert.equal(await code(await issue(old, "eve@example.org")), GrpcCode.Unauthenticated);
      const elsewhere = await issue(old, "ann@example.org", "billing");
      assert.equal(await code(elsewhere), GrpcCode.Unauthenticated);
      const after = await issue(next, "ann@example.org");
      assert.equal(await code(after), GrpcCode.Unauthenticated);

      publish(old, next);
      reload();
      await until("the new key is taken", async () => (await code(after)) === GrpcCode.OK);
      assert.equal(await code(ann), GrpcCode.OK);
      publish(next);
      reload();
      const isRefused = async () => (await code(ann)) === GrpcCode.Unauthenticated;
      await until("the old key is gone", isRefused);
      assert.equal(await code(after), GrpcCode.OK);

      // Calls go on while the file is replaced by what cannot be used.
      const codes = new Set<number>();
      let isOver = false;
      const traffic = (async () => {
        // A token whose signature has to be checked each time, and one that is remembered.
        while (!isOver)
          codes.add(await code(after)).add(await code(await issue(next, "ann@example.org")));
      })();
      const { jwk } = next;
      const keys = (count: number, key: object): string =>
        JSON.stringify({ keys: Array(count).fill(key) });
      const bad = [
        "{",
        "",
        "null",
        keys(1, jwk).slice(0, 60),
        keys(1, { ...jwk, x: 7 }),
        keys(1, []),
        keys(5000, jwk),
        keys(33, jwk),
        keys(1, { kty: "oct", k: "AAAA" }),
        undefined,
        "x".repeat(1024 * 1024 + 1),
      ];
      const kept = /cannot use changed files; those from before stay in force/g;
      const said = (): number => cluster.members[0].log().match(kept)?.length ?? 0;
      // What a failure above ends is told by that failure.
      traffic.catch(() => {});
      const failed = () => metric("quorate_security_reload_failures_total");
      for (const [i, text] of bad.entries()) {
        // Before the file is there: the member looks at it by itself too.
        let before = await failed();
        if (text === undefined) rmSync(jwks);
        else replace(text);
        for (let look = 0; look < 2; look++) {
          if (look > 0) before = await failed();
          reload();
          await until(`file ${i} was looked at`, async () => {
            const failures = await failed();
            // A content counts once, a file that cannot be read at each look.
            return failures > before || (look > 0 && failures === i + 1);
          });
        }
        await until(`file ${i} is said once`, () => said() >= i + 1);
        assert.equal(said(), i + 1);
      }
      publish(next, old);
      reload();
      await until("the old key is back", async () => (await code(ann)) === GrpcCode.OK);
      isOver = true;
      await traffic;
      assert.deepEqual([...codes], [GrpcCode.OK]);
    } finally {
      one.close();
      two.close();
      await cluster.destroy();
      rmSync(dir, { recursive: true });
    }
  });
});
