/** Tokens as JSON Web Tokens: every algorithm, rules of claims, attacks, rotation and bounds. */
import assert from "node:assert/strict";
import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { describe, test } from "node:test";
import { Pauses, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import {
  type JwtAlgorithm,
  type JwtSettings,
  JwtTokens,
  keyFamily,
  MAX_VERIFICATION_KEYS,
  parseAuthToken,
} from "@quorate/member";
import {
  ETCD_CLAIMS,
  JWT_ALGORITHMS,
  MAX_CACHED_TOKENS,
  MAX_RUNNING_VERIFICATIONS,
  MAX_TOKEN_BYTES,
  TokenCache,
  VerifyOnlyError,
} from "@quorate/member/testing";
import * as jose from "jose";
import { readJwtKeys } from "../node/jwt-key-files.ts";

const PUBLIC = "/pub.pem";
const PRIVATE = "/priv.pem";
const JWKS = "/jwks.json";

interface Pair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

function makePair(algorithm: JwtAlgorithm): Pair {
  const family = keyFamily(algorithm);
  if (family === "rsa") return generateKeyPairSync("rsa", { modulusLength: 2048 });
  if (family === "Ed25519") return generateKeyPairSync("ed25519");
  return generateKeyPairSync("ec", { namedCurve: family });
}

const pairs = new Map<string, Pair>();
/** Keys are made once for each kind: RSA takes its time. */
function pairOf(algorithm: JwtAlgorithm): Pair {
  const family = keyFamily(algorithm);
  const known = pairs.get(family) ?? makePair(algorithm);
  pairs.set(family, known);
  return known;
}

const spki = (key: KeyObject): string => key.export({ type: "spki", format: "pem" }) as string;
const pkcs8 = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }) as string;
const jwk = (key: KeyObject, more: object): object => ({
  ...key.export({ format: "jwk" }),
  ...more,
});

type Files = Readonly<Record<string, string>>;

function keysOf(settings: JwtSettings, files: Files) {
  return readJwtKeys(
    settings,
    new Map(Object.entries(files).map(([path, text]) => [path, Buffer.from(text)])),
    new Pauses(new ManualClock().turns),
  );
}

function settingsFor(algorithm: JwtAlgorithm, files: Files, more: Partial<JwtSettings> = {}) {
  return {
    algorithm,
    publicKeyFile: PUBLIC in files ? PUBLIC : "",
    privateKeyFile: PRIVATE in files ? PRIVATE : "",
    jwksFile: JWKS in files ? JWKS : "",
    ttlMs: 300_000,
    ...ETCD_CLAIMS,
    ...more,
  };
}

async function tokensWith(algorithm: JwtAlgorithm, files: Files, more: Partial<JwtSettings> = {}) {
  const settings = settingsFor(algorithm, files, more);
  const clock = new ManualClock(1_700_000_000_000);
  const warnings: string[] = [];
  const logger = {
    ...silentLogger,
    warn: (_msg: string, fields?: object) => void warnings.push(JSON.stringify(fields)),
  };
  const tokens = new JwtTokens(settings, await keysOf(settings, files), { clock, logger, jose });
  return { tokens, clock, warnings, settings };
}

describe("own tokens", () => {
  for (const algorithm of JWT_ALGORITHMS) {
    test(`${algorithm}: a token is accepted by members with either half of the key`, async () => {
      const isSecret = keyFamily(algorithm) === "secret";
      const pair = isSecret ? undefined : pairOf(algorithm);
      const whole: Files =
        pair === undefined
          ? { [PRIVATE]: "a secret of members" }
          : { [PRIVATE]: pkcs8(pair.privateKey), [PUBLIC]: spki(pair.publicKey) };
      const { tokens } = await tokensWith(algorithm, whole);
      const token = await tokens.assign("ann", 7);
      const identity = { user: "ann", revision: 7, roles: undefined, endsMs: 1_700_000_300_000 };
      assert.deepEqual(await tokens.verify(token), identity);
      assert.deepEqual(tokens.cached(token), identity);
      if (pair === undefined) return;
      const verifier = (await tokensWith(algorithm, { [PUBLIC]: spki(pair.publicKey) })).tokens;
      assert.deepEqual(await verifier.verify(token), identity);
      await assert.rejects(verifier.assign("ann", 7), VerifyOnlyError);
    });
  }

  test("a token ends at its time, from the cache too", async () => {
    const { tokens, clock } = await tokensWith("HS256", { [PRIVATE]: "x" }, { ttlMs: 10_000 });
    const token = await tokens.assign("ann", 1);
    assert.ok(await tokens.verify(token));
    clock.advance(9_999);
    assert.ok(tokens.cached(token));
    clock.advance(1);
    assert.equal(tokens.cached(token), undefined);
    assert.equal(await tokens.verify(token), undefined);
  });

  test("a token that is checked while the keys change is not kept", async () => {
    const { tokens, settings } = await tokensWith("HS256", { [PRIVATE]: "x" });
    const token = await tokens.assign("ann", 1);
    const others = await keysOf(settings, { [PRIVATE]: "y" });
    const checked = tokens.verify(token);
    tokens.useKeys(others);
    assert.ok(await checked, "it was asked before");
    assert.deepEqual([tokens.cachedTokens, await tokens.verify(token)], [0, undefined]);
  });

  test("clock skew lengthens a token's life by that much", async () => {
    const more = { ttlMs: 10_000, clockSkewMs: 5000 };
    const { tokens, clock } = await tokensWith("HS256", { [PRIVATE]: "x" }, more);
    const token = await tokens.assign("ann", 1);
    clock.advance(14_000);
    assert.ok(await tokens.verify(token));
    clock.advance(1001);
    assert.equal(await tokens.verify(token), undefined);
  });

  test("claims that are not etcd's are refused", async () => {
    const { tokens, warnings } = await tokensWith("HS256", { [PRIVATE]: "x" });
    const sign = (claims: object) =>
      new jose.SignJWT({ ...claims }).setProtectedHeader({ alg: "HS256" }).sign(Buffer.from("x"));
    for (const claims of [{}, { username: "ann" }, { revision: 1 }, { username: 5, revision: 1 }]) {
      assert.equal(await tokens.verify(await sign(claims)), undefined, JSON.stringify(claims));
    }
    // etcd accepts a token without an end.
    assert.ok(await tokens.verify(await sign({ username: "ann", revision: 1 })));
    assert.equal(warnings.length, 1, "warnings are bounded");
    assert.doesNotMatch(warnings[0], /eyJ/);
  });
});

describe("tokens that mean harm", () => {
  const { publicKey, privateKey } = pairOf("RS256");
  const claims = { username: "root", revision: 1 };

  test("no signature, and the public key taken for a secret", async () => {
    const { tokens } = await tokensWith("RS256", { [PUBLIC]: spki(publicKey) });
    const secret = Buffer.from(spki(publicKey));
    const forged = await new jose.SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(secret);
    for (const token of [
      new jose.UnsecuredJWT(claims).encode(),
      forged,
      "",
      "a.b.c",
      "ey",
      `${"e".repeat(MAX_TOKEN_BYTES)}.`,
    ]) {
      assert.equal(await tokens.verify(token), undefined);
    }
    assert.equal(tokens.cachedTokens, 0);
  });

  test("another algorithm of the same key, and a key that the token itself brings", async () => {
    const { tokens } = await tokensWith("RS256", { [PUBLIC]: spki(publicKey) });
    const sign = (header: { alg: string }, key: KeyObject) =>
      new jose.SignJWT(claims).setProtectedHeader(header).sign(key);
    assert.equal(await tokens.verify(await sign({ alg: "PS256" }, privateKey)), undefined);
    const own = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const header = { alg: "RS256", jwk: own.publicKey.export({ format: "jwk" }) };
    assert.equal(await tokens.verify(await sign(header, own.privateKey)), undefined);
    assert.ok(await tokens.verify(await sign({ alg: "RS256" }, privateKey)));
  });

  test("a changed payload under a cached signature", async () => {
    const { tokens } = await tokensWith("HS256", { [PRIVATE]: "x" });
    const token = await tokens.assign("ann", 1);
    assert.ok(await tokens.verify(token));
    const [head, , mark] = token.split(".");
    const other = Buffer.from(JSON.stringify(claims)).toString("base64url");
    assert.equal(await tokens.verify(`${head}.${other}.${mark}`), undefined);
  });
});

describe("tokens of an identity provider", () => {
  const old = pairOf("ES256");
  const next = makePair("ES256");
  const rules = {
    rolesClaim: "groups",
    userClaim: "sub",
    audience: "quorate",
    issuer: "https://idp",
  };

  function issue(pair: Pair, kid: string | undefined, claims: object, exp: number | undefined) {
    const token = new jose.SignJWT({ ...claims })
      .setProtectedHeader({ alg: "ES256", ...(kid === undefined ? {} : { kid }) })
      .setIssuer("https://idp")
      .setAudience(["other", "quorate"])
      .setSubject("ann");
    if (exp !== undefined) token.setExpirationTime(exp);
    return token.sign(pair.privateKey);
  }
  const SOON = 1_700_000_100;
  const set = (...keys: object[]): Files => ({ [JWKS]: JSON.stringify({ keys }) });
  const oldKey = jwk(old.publicKey, { kid: "a", use: "sig", alg: "ES256" });
  const nextKey = jwk(next.publicKey, { kid: "b" });

  test("users and roles come from claims; audience, issuer and an end are demanded", async () => {
    const { tokens } = await tokensWith("RS256", set(oldKey), rules);
    const good = await issue(old, "a", { groups: ["reader", "writer"] }, SOON);
    const identity = await tokens.verify(good);
    assert.deepEqual(identity, {
      user: "ann",
      revision: undefined,
      roles: ["reader", "writer"],
      endsMs: SOON * 1000,
    });
    assert.deepEqual(
      (await tokens.verify(await issue(old, "a", { groups: "one two" }, SOON)))?.roles,
      ["one", "two"],
    );
    assert.deepEqual((await tokens.verify(await issue(old, "a", {}, SOON)))?.roles, []);
    for (const token of [
      await issue(old, "a", {}, undefined),
      await issue(old, "a", {}, 1_699_999_999),
      await issue(old, "a", { groups: 7 }, SOON),
      await issue(old, "a", { groups: Array.from({ length: 65 }, (_, i) => `r${i}`) }, SOON),
      await issue(old, "a", { groups: [{}] }, SOON),
      await issue(old, "a", { nbf: SOON }, SOON),
    ]) {
      assert.equal(await tokens.verify(token), undefined);
    }
    for (const wrong of [{ audience: "elsewhere" }, { issuer: "https://evil" }]) {
      const strict = (await tokensWith("RS256", set(oldKey), { ...rules, ...wrong })).tokens;
      assert.equal(await strict.verify(good), undefined);
    }
  });

  test("keys overlap during a rotation, and a key that is gone ends its tokens at once", async () => {
    const { tokens, settings } = await tokensWith("RS256", set(oldKey), rules);
    const before = await issue(old, "a", {}, SOON);
    const after = await issue(next, "b", {}, SOON);
    assert.ok(await tokens.verify(before));
    assert.equal(await tokens.verify(after), undefined);
    tokens.useKeys(await keysOf(settings, set(oldKey, nextKey)));
    assert.ok(await tokens.verify(before));
    assert.ok(await tokens.verify(after));
    tokens.useKeys(await keysOf(settings, set(nextKey)));
    assert.equal(tokens.cached(before), undefined);
    assert.equal(await tokens.verify(before), undefined);
    assert.ok(await tokens.verify(after));
  });

  test("own tokens go on beside those of the provider", async () => {
    const pair = pairOf("RS256");
    const files = { ...set(oldKey), [PRIVATE]: pkcs8(pair.privateKey) };
    const { tokens } = await tokensWith("RS256", files, rules);
    assert.equal((await tokens.verify(await tokens.assign("bob", 3)))?.revision, 3);
    // The provider's revision is no revision of the auth store.
    const identity = await tokens.verify(await issue(old, "a", { revision: 9 }, SOON));
    assert.equal(identity?.revision, undefined);
  });
});

describe("files of keys", () => {
  const { publicKey, privateKey } = pairOf("RS256");
  const refused = async (algorithm: JwtAlgorithm, files: Files, reason: RegExp): Promise<void> => {
    await assert.rejects(keysOf(settingsFor(algorithm, files), files), reason);
  };

  test("a bundle of public keys, PKCS#1 and other blocks", async () => {
    const other = makePair("RS256");
    const pkcs1 = other.publicKey.export({ type: "pkcs1", format: "pem" }) as string;
    const files = { [PUBLIC]: `# old\n${spki(publicKey)}\n# new\n${pkcs1}` };
    assert.equal((await keysOf(settingsFor("RS256", files), files)).verification.length, 2);
  });

  test("what is wrong with a file is said with its path, without its content", async () => {
    await refused(
      "RS256",
      { [PRIVATE]: "nonsense" },
      /^Error: \/priv.pem has no private key in PEM/,
    );
    await refused("RS256", { [PUBLIC]: "nonsense" }, /\/pub.pem has no public key/);
    await refused("ES256", { [PUBLIC]: spki(publicKey) }, /kind rsa, not P-256/);
    await refused("HS256", { [PRIVATE]: "" }, /\/priv.pem is empty/);
    const other = makePair("RS256");
    const mixed = { [PUBLIC]: spki(other.publicKey), [PRIVATE]: pkcs8(privateKey) };
    await refused("RS256", mixed, /\/priv.pem belongs to none in \/pub.pem/);
    const short = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey;
    await refused("RS256", { [PUBLIC]: spki(short) }, /1024 bits/);
    for (const [text, reason] of [
      ["{", /not JSON/],
      ["null", /no list of keys/],
      ['{"keys":[]}', /no key for signatures/],
      ['{"keys":[{"kty":"oct","k":"AAAA"}]}', /no key for signatures/],
      ['{"keys":[{"kty":"RSA","kid":"x"}]}', /cannot be read \(kid x\)/],
    ] as const) {
      await refused("RS256", { [JWKS]: text }, reason);
    }
    const many = Array(MAX_VERIFICATION_KEYS + 1).fill(jwk(publicKey, {}));
    await refused(
      "RS256",
      { [JWKS]: JSON.stringify({ keys: many }) },
      /33 keys are more than the 32/,
    );
  });

  test("a private key in a set is reduced to its public half; keys for encryption are left out", async () => {
    const files = {
      [JWKS]: JSON.stringify({ keys: [jwk(privateKey, {}), jwk(publicKey, { use: "enc" })] }),
    };
    const { verification } = await keysOf(settingsFor("RS256", files), files);
    assert.deepEqual(
      verification.map(({ key }) => (key as KeyObject).type),
      ["public"],
    );
    assert.ok((verification[0].key as KeyObject).equals(createPublicKey(privateKey)));
  });
});

describe("bounds", () => {
  test("verified tokens are kept up to a number and a size; the first goes first", () => {
    const cache = new TokenCache<{ endsMs: number | undefined }>(3, 20);
    for (const token of ["aaaaa", "bbbbb", "ccccc", "ddddd"])
      cache.set(token, { endsMs: undefined });
    assert.deepEqual([cache.size, cache.bytes, cache.get("aaaaa", 0)], [3, 15, undefined]);
    cache.set("e".repeat(12), { endsMs: 5 });
    assert.deepEqual([cache.size, cache.bytes], [2, 17]);
    cache.set("f".repeat(21), { endsMs: 5 });
    assert.equal(cache.size, 2);
    assert.equal(cache.get("e".repeat(12), 5), undefined);
    assert.equal(cache.bytes, 5);
    assert.ok(MAX_CACHED_TOKENS > 10_000);
  });

  test("calls with one token share a check; too many checks at once are refused", async () => {
    const { tokens } = await tokensWith("HS256", { [PRIVATE]: "x" });
    const token = await tokens.assign("ann", 1);
    await Promise.all(Array.from({ length: 100 }, () => tokens.verify(token)));
    assert.equal(tokens.verifications, 1);
    const flood = Array.from({ length: MAX_RUNNING_VERIFICATIONS }, (_, i) =>
      tokens.verify(`x.${i}.z`),
    );
    await assert.rejects(tokens.verify("one.more.token"), /too many requests/);
    assert.ok((await Promise.all(flood)).every((one) => one === undefined));
    assert.equal(tokens.refusals, MAX_RUNNING_VERIFICATIONS);
  });
});

describe("--auth-token", () => {
  test("is read as etcd reads it", () => {
    assert.deepEqual(parseAuthToken("simple"), { kind: "simple" });
    assert.deepEqual(
      parseAuthToken("jwt,pub-key=a.pem,priv-key=b.pem,sign-method=PS384,ttl=10m,x=1"),
      {
        kind: "jwt",
        files: {
          algorithm: "PS384",
          publicKeyFile: "a.pem",
          privateKeyFile: "b.pem",
          jwksFile: "",
          ttlMs: 600_000,
        },
        unknown: ["x"],
      },
    );
    for (const [text, reason] of [
      ["token", /unknown type of token "token"/],
      ["jwt", /needs sign-method/],
      ["jwt,sign-method=none,pub-key=a", /needs sign-method/],
      ["jwt,sign-method=RS256", /needs pub-key=FILE/],
      ["jwt,sign-method=HS256,pub-key=a", /needs priv-key=FILE, the shared secret/],
      ["jwt,sign-method=HS256,priv-key=a,jwks=b", /does not go with HS256/],
      ["jwt,sign-method=RS256,pub-key=a,pub-key=b", /pub-key is given twice/],
      ["jwt,sign-method=RS256,pub-key=a,ttl=0s", /more than 0/],
      ["jwt,sign-method=RS256,pub-key", /cannot read "pub-key"/],
    ] as const) {
      assert.throws(() => parseAuthToken(text), reason, text);
    }
  });
});
