/** ID tokens of an OpenID Connect provider, good and bad, and providers that fail. */
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { type JWTPayload, SignJWT } from "jose";
import { createAuthority } from "../../../../scripts/certs.ts";
import { oidcPages } from "../../node/oidc-pages.ts";
import {
  MAX_OIDC_PAGE_BYTES,
  MAX_WAITING_FOR_OIDC_KEYS,
  MIN_OIDC_REFRESH_MS,
  type OidcSettings,
  OidcTokens,
} from "../../src/authn/oidc-tokens.ts";
import { InvalidTokenError } from "../../src/authn/token-authenticator.ts";
import { exchange } from "../interop/rest/exchange.ts";

const ISSUER = "https://issuer.example";
const SETTINGS: OidcSettings = {
  issuer: ISSUER,
  clientId: "me",
  usernameClaim: "sub",
  usernamePrefix: "",
  groupsClaim: "groups",
  groupsPrefix: "oidc:",
  requiredClaims: new Map(),
  algorithms: ["RS256"],
};

const pair = () => generateKeyPairSync("rsa", { modulusLength: 2048 });
const [FIRST, SECOND] = [pair(), pair()];

interface Page {
  body: string;
}

/** A provider whose pages are in memory. */
class Provider {
  readonly clock = new ManualClock();
  readonly pages = new Map<string, Page>();
  reads = 0;
  /** Reads do not end while this is set. */
  isStuck = false;
  readonly tokens: OidcTokens;

  constructor(settings: Partial<OidcSettings> = {}) {
    this.about({ issuer: ISSUER, jwks_uri: `${ISSUER}/keys` });
    this.keys([["first", FIRST.publicKey]]);
    const fetchPage = async (url: string): Promise<string> => {
      this.reads++;
      while (this.isStuck) await turn();
      const page = this.pages.get(url);
      if (page === undefined) throw new Error(`${url}: status 404`);
      return page.body;
    };
    this.tokens = new OidcTokens(
      { ...SETTINGS, ...settings },
      { fetchPage, clock: this.clock, random: new SeededRandom(1n), logger: silentLogger },
    );
  }

  about(document: object): void {
    const url = `${ISSUER}/.well-known/openid-configuration`;
    this.pages.set(url, { body: JSON.stringify(document) });
  }

  keys(keys: readonly (readonly [string, KeyObject])[]): void {
    const jwks = keys.map(([kid, key]) => ({ ...key.export({ format: "jwk" }), kid, use: "sig" }));
    this.pages.set(`${ISSUER}/keys`, { body: JSON.stringify({ keys: jwks }) });
  }

  sign(
    claims: Readonly<Record<string, unknown>> = {},
    { kid = "first", key = FIRST.privateKey, alg = "RS256" } = {},
  ) {
    const seconds = Math.floor(this.clock.wallMs() / 1000);
    const all = { iss: ISSUER, aud: "me", sub: "ann", exp: seconds + 600, ...claims };
    return new SignJWT(all).setProtectedHeader({ alg, kid }).sign(key);
  }

  /** The name and groups, or why the token is refused. */
  async user(token: string): Promise<string> {
    try {
      const identity = await this.tokens.authenticateToken(token, ["api"]);
      if (identity === undefined) return "not its own";
      return [identity.user.name, ...identity.user.groups].join(" ");
    } catch (error) {
      assert.ok(error instanceof InvalidTokenError, String(error));
      return error.message;
    }
  }
}

test("a token of the provider is a user with groups", async () => {
  const provider = new Provider();
  const { tokens } = provider;
  const identity = await tokens.authenticateToken(
    await provider.sign({ groups: ["a", "b"], jti: "7" }),
    ["api"],
  );
  assert.deepEqual(identity?.user, {
    name: `${ISSUER}#ann`,
    uid: "",
    groups: ["oidc:a", "oidc:b"],
    extra: { "authentication.kubernetes.io/credential-id": ["JTI=7"] },
  });
  assert.deepEqual(identity?.audiences, ["api"]);
  assert.equal(await provider.user(await provider.sign({ groups: "c" })), `${ISSUER}#ann oidc:c`);
  tokens.stop();
});

test("what is not the provider's, or not good, is refused", async () => {
  const provider = new Provider({ requiredClaims: new Map([["team", "x"]]) });
  const team = { team: "x" };
  const user = async (...args: Parameters<Provider["sign"]>) =>
    provider.user(await provider.sign(...args));
  const seconds = provider.clock.wallMs() / 1000;
  assert.equal(await user(team), `${ISSUER}#ann`);
  assert.equal(await user({ ...team, iss: "https://other.example" }), "not its own");
  assert.match(await user({ ...team, aud: "you" }), /unexpected "aud"/);
  assert.match(await user({ ...team, exp: seconds - 1 }), /token is expired/);
  assert.match(await user({ ...team, exp: undefined }), /missing required "exp"/);
  assert.match(await user({ ...team, nbf: seconds + 90 }), /"nbf" claim timestamp check failed/);
  assert.equal(await user({ ...team, nbf: seconds + 30 }), `${ISSUER}#ann`);
  assert.match(await user({ ...team, sub: undefined }), /parse username claims "sub"/);
  assert.match(await user({ ...team, groups: [1] }), /parse groups claim/);
  assert.match(await user({}), /required claim team not present/);
  assert.match(await user({ team: "y" }), /required claim team value does not match/);
  assert.match(await user(team, { key: SECOND.privateKey }), /signature verification failed/);
  assert.match(await user(team, { alg: "RS384" }), /"alg" \(Algorithm\) Header/);
  const [head, claims] = (await provider.sign(team)).split(".");
  assert.match(await provider.user(`${head}.${claims}.`), /^oidc: verify token/);
  assert.equal(await provider.user("x"), "not its own");
  provider.tokens.stop();
});

test("names have a prefix, and an address must be verified", async () => {
  const name = async (settings: Partial<OidcSettings>, claims: JWTPayload) => {
    const provider = new Provider(settings);
    const user = await provider.user(await provider.sign(claims));
    provider.tokens.stop();
    return user;
  };
  assert.equal(await name({ usernamePrefix: "-" }, {}), "ann");
  assert.equal(await name({ usernamePrefix: "p:" }, {}), "p:ann");
  const email = { usernameClaim: "email" };
  assert.equal(await name(email, { email: "a@b.c", email_verified: true }), "a@b.c");
  assert.equal(await name(email, { email: "a@b.c" }), "a@b.c");
  assert.equal(
    await name(email, { email: "a@b.c", email_verified: false }),
    "oidc: email not verified",
  );
});

test("a new key is found, and unknown keys make few reads", async () => {
  const provider = new Provider();
  assert.equal(await provider.user(await provider.sign()), `${ISSUER}#ann`);
  assert.equal(provider.reads, 2);
  const second = await provider.sign({}, { kid: "second", key: SECOND.privateKey });
  for (let i = 0; i < 50; i++) assert.match(await provider.user(second), /no applicable key found/);
  assert.equal(provider.reads, 2);
  provider.keys([["second", SECOND.publicKey]]);
  provider.clock.advance(MIN_OIDC_REFRESH_MS);
  assert.equal(await provider.user(second), `${ISSUER}#ann`);
  assert.equal(provider.reads, 4);
  assert.match(await provider.user(await provider.sign()), /no applicable key found/);
  provider.tokens.stop();
});

test("a provider that lies, is not there, or never responds", async () => {
  const refused = "oidc: authenticator not initialized";
  const provider = new Provider();
  const token = await provider.sign({ exp: provider.clock.wallMs() / 1000 + 100_000 });
  provider.about({ issuer: "https://other.example", jwks_uri: `${ISSUER}/keys` });
  assert.equal(await provider.user(token), refused);
  provider.about({ issuer: ISSUER, jwks_uri: "http://issuer.example/keys" });
  provider.clock.advance(MIN_OIDC_REFRESH_MS);
  assert.equal(await provider.user(token), refused);
  provider.pages.clear();
  const before = provider.reads;
  for (let second = 0; second < 600; second++) {
    provider.clock.advance(1000);
    await turn();
  }
  // The pauses grow to a minute.
  const reads = provider.reads - before;
  assert.ok(reads >= 8 && reads < 40, `${reads} reads`);
  provider.isStuck = true;
  provider.clock.advance(60_000);
  // One read is under way; requests wait for it a short time, and few of them.
  const waiting = Array.from({ length: MAX_WAITING_FOR_OIDC_KEYS + 10 }, () =>
    provider.user(token),
  );
  const first = await Promise.race(waiting);
  assert.equal(first, refused);
  for (let i = 0; i < 5; i++) {
    await turn();
    provider.clock.advance(1000);
  }
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set([refused]));
  provider.isStuck = false;
  provider.tokens.stop();
});

test("pages are read over HTTPS with the given authority, and have a bound", async (t) => {
  const ca = await createAuthority("provider");
  const leaf = await ca.issue({ commonName: "provider", hosts: ["127.0.0.1"], usage: "server" });
  const { certPem: cert, keyPem: key } = leaf;
  const server = createServer({ cert, key }, (request, response) => {
    if (request.url === "/large") response.end("x".repeat(MAX_OIDC_PAGE_BYTES + 1));
    else if (request.url === "/gone") response.writeHead(404).end();
    else response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  const { port } = server.address() as { port: number };
  const url = `https://127.0.0.1:${port}`;
  const read = oidcPages(ca.caPem);
  assert.equal(await read(`${url}/`), "{}");
  await assert.rejects(read(`${url}/large`), /more than 1048576 bytes/);
  await assert.rejects(read(`${url}/gone`), /status 404/);
  await assert.rejects(oidcPages(undefined)(`${url}/`), /certificate/);
});

test("a server takes the tokens of a provider, and serves others while it is slow", async (t) => {
  const ca = await createAuthority("provider");
  const leaf = await ca.issue({ commonName: "provider", hosts: ["127.0.0.1"], usage: "server" });
  let isSlow = false;
  const jwk = { ...FIRST.publicKey.export({ format: "jwk" }), kid: "first" };
  const server = createServer({ cert: leaf.certPem, key: leaf.keyPem }, (request, response) => {
    // A slow provider does not respond at all.
    if (isSlow) return;
    const keys = JSON.stringify({ keys: [jwk] });
    const about = JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` });
    response.end(request.url === "/keys" ? keys : about);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const issuer = `https://127.0.0.1:${port}`;
  const dir = mkdtempSync(join(tmpdir(), "oidc-"));
  t.after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(dir, { recursive: true, force: true });
  });
  const caFile = join(dir, "ca.pem");
  writeFileSync(caFile, ca.caPem);
  await using api = await startApiServer({ oidc: { ...SETTINGS, issuer, caFile } });
  const sign = (kid: string) =>
    new SignJWT({ groups: ["g"], iss: issuer, aud: "me", sub: "ann" })
      .setProtectedHeader({ alg: "RS256", kid })
      .setExpirationTime("10m")
      .sign(FIRST.privateKey);
  const review = async (token: string) =>
    exchange(
      { url: api.url, headers: { authorization: `Bearer ${token}` } },
      {
        method: "POST",
        path: "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        body: { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" },
      },
    );
  const token = await sign("first");
  const { status, body } = await review(token);
  assert.equal(status, 201);
  const { userInfo } = (body as { status: { userInfo: { username: string; groups: string[] } } })
    .status;
  assert.equal(userInfo.username, `${issuer}#ann`);
  assert.deepEqual(userInfo.groups, ["oidc:g", "system:authenticated"]);
  isSlow = true;
  assert.equal((await review(await sign("other"))).status, 401);
  assert.equal((await review(`${token.slice(0, -1)}${"A".repeat(20_000)}`)).status, 431);
  assert.equal((await review(token)).status, 201);
});
