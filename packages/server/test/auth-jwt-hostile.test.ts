/** Tokens and key sets as an attacker writes them: none is accepted, and none costs much. */
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { test } from "node:test";
import { Pauses, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import type { JwtSettings } from "@quorate/member";
import { JwtTokens } from "@quorate/member";
import { ETCD_CLAIMS, MAX_TOKEN_BYTES } from "@quorate/member/testing";
import * as jose from "jose";
import { MAX_LISTED_KEYS, readJwtKeys } from "../node/jwt-key-files.ts";

const NOW_MS = 1_700_000_000_000;
const SOON = NOW_MS / 1000 + 600;
const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const jwk = { ...publicKey.export({ format: "jwk" }), kid: "k1", alg: "ES256", use: "sig" };

async function tokensOf(more: Partial<JwtSettings> = {}, keys: unknown = [jwk]) {
  const settings: JwtSettings = {
    algorithm: "ES256",
    publicKeyFile: "",
    privateKeyFile: "",
    jwksFile: "/jwks",
    ttlMs: 300_000,
    ...ETCD_CLAIMS,
    userClaim: "sub",
    rolesClaim: "groups",
    ...more,
  };
  const contents = new Map([["/jwks", Buffer.from(JSON.stringify({ keys }))]]);
  const clock = new ManualClock(NOW_MS);
  const logger = silentLogger;
  return new JwtTokens(settings, await readJwtKeys(settings, contents, new Pauses(clock.turns)), {
    clock,
    logger,
    jose,
  });
}

const encode = (text: string | object): string =>
  Buffer.from(typeof text === "string" ? text : JSON.stringify(text)).toString("base64url");

/** A token of any header and payload, properly signed. */
function token(header: string | object, payload: string | object, key: KeyObject = privateKey) {
  const signed = `${encode(header)}.${encode(payload)}`;
  const signature = sign("sha256", Buffer.from(signed), { key, dsaEncoding: "ieee-p1363" });
  return `${signed}.${signature.toString("base64url")}`;
}

const HEADER = { alg: "ES256", kid: "k1" };
const CLAIMS = { sub: "ann", groups: ["reader"], exp: SOON };

test("the tokens of this test are good ones", async () => {
  const tokens = await tokensOf();
  assert.deepEqual((await tokens.verify(token(HEADER, CLAIMS)))?.roles, ["reader"]);
});

test("headers that say how to verify them are not believed", async () => {
  const tokens = await tokensOf();
  const foreign = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const url = "https://127.0.0.1:1/keys";
  const own = foreign.publicKey.export({ format: "jwk" });
  for (const header of [
    { ...HEADER, jwk: own },
    { ...HEADER, jku: url },
    { ...HEADER, x5u: url, x5c: ["AAAA"] },
    { ...HEADER, kid: "../../../../dev/null" },
    { ...HEADER, kid: "k1' UNION SELECT 'key" },
    { ...HEADER, kid: "__proto__" },
    { ...HEADER, kid: { toString: "k1" } },
  ]) {
    const forged = token(header, CLAIMS, foreign.privateKey);
    assert.equal(await tokens.verify(forged), undefined, JSON.stringify(header));
  }
  for (const header of [
    "none",
    "None",
    "NONE",
    "nOnE",
    "",
    "HS256",
    "RS256",
    "PS256",
    "ES384",
    "EdDSA",
    "es256",
  ].map((alg) => ({ ...HEADER, alg }))) {
    const signed = token(header, CLAIMS);
    const unsigned = `${signed.slice(0, signed.lastIndexOf("."))}.`;
    for (const one of [signed, unsigned])
      assert.equal(await tokens.verify(one), undefined, header.alg);
  }
  // Extensions that must be understood, and the payload that is not base64.
  for (const header of [
    { ...HEADER, crit: ["exp"], exp: SOON },
    { ...HEADER, crit: ["b64"], b64: false },
    { ...HEADER, crit: [] },
  ]) {
    assert.equal(await tokens.verify(token(header, CLAIMS)), undefined, JSON.stringify(header));
  }
});

test("signatures of nothing, of zeros and in another encoding are refused", async () => {
  const tokens = await tokensOf();
  const good = token(HEADER, CLAIMS);
  const [header, payload, signature] = good.split(".") as [string, string, string];
  const der = sign("sha256", Buffer.from(`${header}.${payload}`), privateKey).toString("base64url");
  for (const bad of [
    "",
    encode(Buffer.alloc(64).toString("latin1")),
    Buffer.alloc(64).toString("base64url"),
    Buffer.alloc(64, 0xff).toString("base64url"),
    der,
    signature.slice(0, -2),
    `${signature}AA`,
    `${signature}=`,
  ]) {
    assert.equal(await tokens.verify(`${header}.${payload}.${bad}`), undefined, bad);
  }
});

test("texts that are no token, and tokens of any size, are refused", async () => {
  const tokens = await tokensOf();
  const good = token(HEADER, CLAIMS);
  const [header, payload, signature] = good.split(".") as [string, string, string];
  for (const bad of [
    "",
    ".",
    "..",
    "....",
    "a.b",
    `${good}.`,
    `.${good}`,
    ` ${good}`,
    `${good}\n`,
    `${header}.${payload}`,
    `${header}.${payload}.${signature}.${signature}.${signature}`,
    `${encode("[]")}.${payload}.${signature}`,
    `${encode("null")}.${payload}.${signature}`,
    `${encode('{"alg":"ES256","alg":"none"}')}.${payload}.`,
    `\u212a${good}`,
    "x".repeat(MAX_TOKEN_BYTES + 1),
    token(HEADER, { ...CLAIMS, more: "x".repeat(MAX_TOKEN_BYTES) }),
    token(HEADER, `{"sub":"ann","exp":${SOON},"groups":${"[".repeat(5000)}${"]".repeat(5000)}}`),
  ]) {
    assert.equal(await tokens.verify(bad), undefined, bad.slice(0, 40));
  }
  assert.equal(tokens.cachedTokens, 0);
});

test("claims of other types, ends without end, and names of the language are no identity", async () => {
  const tokens = await tokensOf();
  for (const claims of [
    { ...CLAIMS, sub: "" },
    { ...CLAIMS, sub: ["ann"] },
    { ...CLAIMS, sub: { name: "root" } },
    { ...CLAIMS, sub: "x".repeat(257) },
    { ...CLAIMS, exp: "never" },
    { ...CLAIMS, exp: null },
    { ...CLAIMS, exp: -1 },
    { sub: "ann", groups: ["reader"] },
    { ...CLAIMS, groups: { length: 1, 0: "root" } },
    { ...CLAIMS, groups: [["root"]] },
    { ...CLAIMS, groups: [null] },
    { ...CLAIMS, groups: true },
    '{"__proto__":{"sub":"root"},"exp":9999999999}',
    "[]",
    '"root"',
  ]) {
    assert.equal(await tokens.verify(token(HEADER, claims)), undefined, JSON.stringify(claims));
  }
  const odd = { ...CLAIMS, groups: ["__proto__", "constructor", "ROOT", "root ", "r\u043eot"] };
  const identity = await tokens.verify(token(HEADER, odd));
  assert.ok(identity?.roles?.every((role) => role !== "root"));
  // The last of two counts, as for the one who signed it.
  const twice = `{"sub":"ann","sub":"eve","groups":["root"],"groups":[],"exp":${SOON}}`;
  const known = await tokens.verify(token(HEADER, twice));
  assert.deepEqual([known?.user, known?.roles], ["eve", []]);
});

test("a key set with too many keys is refused before one of them is read", async () => {
  const many = Array.from({ length: MAX_LISTED_KEYS + 1 }, () => ({ kty: "EC", crv: "none" }));
  await assert.rejects(tokensOf({}, many), /lists 129 keys; at most 128 are read/);
  const others = Array.from({ length: MAX_LISTED_KEYS - 1 }, () => ({ ...jwk, use: "enc" }));
  assert.ok(await tokensOf({}, [...others, jwk]));
  const named = { kty: "EC", kid: `\u001b[2J${"x".repeat(1000)}` };
  await assert.rejects(
    tokensOf({}, [named]),
    ({ message }: Error) => !message.includes("\u001b") && message.length < 150,
  );
});
