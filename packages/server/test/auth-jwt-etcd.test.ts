/** Tokens of etcd are accepted by Quorate's code, and Quorate's tokens by etcd. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { connect } from "@quorate/client/node";
import { silentLogger } from "@quorate/host";
import { nodeClock } from "@quorate/host/node";
import { JwtTokens, parseAuthToken } from "@quorate/member";
import { ETCD_CLAIMS } from "@quorate/member/testing";
import { AuthService } from "@quorate/proto";
import * as jose from "jose";
import { startCluster } from "../../../test/support/cluster.ts";
import { etcd, skipWithoutEtcd } from "../../../test/support/executables.ts";
import { openJwtKeys } from "../node/jwt-key-files.ts";

const isOld = etcd === undefined || !/Version: 3\.[5-9]\./.test(versionOf(etcd.command[0]));

function versionOf(program: string): string {
  return spawnSync(program, ["--version"], { encoding: "utf8" }).stdout;
}

const kinds = {
  RS256: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  PS384: () => generateKeyPairSync("rsa", { modulusLength: 2048 }),
  ES512: () => generateKeyPairSync("ec", { namedCurve: "P-521" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
  HS256: () => undefined,
} as const;

describe("tokens of etcd", { skip: skipWithoutEtcd }, () => {
  let dir: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), "quorate-jwt-"));
  });
  after(() => rmSync(dir, { recursive: true }));

  /** Writes keys and returns the value of --auth-token. */
  function option(method: keyof typeof kinds): string {
    const [pub, priv] = [join(dir, `${method}.pub`), join(dir, `${method}.key`)];
    const pair = kinds[method]();
    if (pair === undefined) {
      writeFileSync(priv, "a secret that members share");
      return `jwt,sign-method=${method},priv-key=${priv},ttl=1m`;
    }
    writeFileSync(pub, pair.publicKey.export({ type: "spki", format: "pem" }));
    writeFileSync(priv, pair.privateKey.export({ type: "pkcs8", format: "pem" }));
    return `jwt,pub-key=${pub},priv-key=${priv},sign-method=${method},ttl=1m`;
  }

  for (const method of Object.keys(kinds) as (keyof typeof kinds)[]) {
    const skip = method === "EdDSA" && isOld ? "this etcd has no EdDSA" : false;
    test(`${method}: each accepts the other's`, { skip }, async () => {
      const text = option(method);
      const kind = parseAuthToken(text);
      assert.ok(kind.kind === "jwt");
      const settings = { ...kind.files, ...ETCD_CLAIMS };
      const dependencies = { clock: nodeClock, logger: silentLogger };
      const source = await openJwtKeys(settings, dependencies);
      const tokens = new JwtTokens(settings, source.current, { ...dependencies, jose });
      const flags = [`--auth-token=${text}`, "--bcrypt-cost=4"];
      const cluster = await startCluster({ executable: etcd!, size: 1, flags });
      const endpoints = cluster.endpoints;
      const admin = connect({ endpoints });
      try {
        await admin.auth.userAdd("root", "pw");
        await admin.auth.roleAdd("root");
        await admin.auth.userGrantRole("root", "root");
        await admin.auth.enable();
        const request = { name: "root", password: "pw" };
        const { token } = await admin.call(AuthService.methods.Authenticate, request, true);
        const identity = await tokens.verify(token);
        assert.ok(identity !== undefined && identity.revision !== undefined);
        assert.equal(identity.user, "root");
        // AuthStatus came with 3.5.
        if (!isOld) assert.equal(identity.revision, (await admin.auth.status()).authRevision);

        const own = await tokens.assign("root", identity.revision);
        const client = connect({ endpoints, auth: { token: own } });
        await client.put("k", "v");
        assert.equal((await client.get("k")).kvs.length, 1);
        client.close();
        const unknown = connect({ endpoints, auth: { token: `${own}x` } });
        await assert.rejects(unknown.get("k"), /invalid auth token/);
        unknown.close();
      } finally {
        source.close();
        admin.close();
        await cluster.destroy();
      }
    });
  }
});
