/** Bearer tokens, with what attackers send. */
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { type HttpHead, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import type { ApiError, KubeObject, UserInfo } from "@quorate/kube-storage";
import { newServiceAccountKeyPem, serviceAccountKeys } from "../../node/service-account-keys.ts";
import {
  MAX_CACHED_TOKENS,
  MAX_TOKEN_LENGTH,
  RequestAuthenticator,
  TokenCache,
} from "../../src/authn/request-authenticator.ts";
import { ServiceAccountTokens } from "../../src/authn/service-account-tokens.ts";
import {
  anyTokenAuthenticator,
  InvalidTokenError,
  type TokenAuthenticator,
} from "../../src/authn/token-authenticator.ts";
import { parseCsv, parseTokenFile, staticTokens } from "../../src/authn/token-file.ts";
import { openIdMetadata } from "../../src/server/openid-pages.ts";
import { headOf } from "./heads.ts";
import { driven, startServer } from "./server.ts";
import { contextOf, MASTER, userOf } from "./world.ts";

const ISSUER = "https://issuer.example";
const pem = await newServiceAccountKeyPem();
const keys = serviceAccountKeys({ path: "sa.key", pem });

function object(kind: string, name: string, uid: string, more = {}): KubeObject {
  return { apiVersion: "v1", kind, metadata: { name, namespace: "n", uid, ...more } };
}

function tokensOver(objects: Map<string, KubeObject>, clock = new ManualClock(), own = keys) {
  const tokens = new ServiceAccountTokens({ issuers: [ISSUER], audiences: [ISSUER] }, own, {
    clock,
    newUuid: () => "id-1",
    objects: {
      get: async (resource, namespace, name) => objects.get(`${resource}/${namespace}/${name}`),
    },
  });
  return { tokens, clock };
}

const CLAIMS = { namespace: "n", serviceaccount: { name: "sa", uid: "u1" } };
const ACCOUNT = new Map([["serviceaccounts/n/sa", object("ServiceAccount", "sa", "u1")]]);

async function reason(tokens: TokenAuthenticator, token: string, audiences = [ISSUER]) {
  try {
    const identity = await tokens.authenticateToken(token, audiences);
    return identity === undefined ? "not its own" : `user ${identity.user.name}`;
  } catch (error) {
    assert.ok(error instanceof InvalidTokenError, String(error));
    return error.message;
  }
}

test("a token proves its account for its audience, until it ends", async () => {
  const { tokens, clock } = tokensOver(new Map(ACCOUNT));
  const token = await tokens.issue({ claims: CLAIMS, audiences: [ISSUER], expirationSeconds: 600 });
  const identity = await tokens.authenticateToken(token, [ISSUER]);
  assert.deepEqual(identity!.user, {
    name: "system:serviceaccount:n:sa",
    uid: "u1",
    groups: ["system:serviceaccounts", "system:serviceaccounts:n"],
    extra: { "authentication.kubernetes.io/credential-id": ["JTI=id-1"] },
  });
  assert.equal(
    await reason(tokens, token, ["vault"]),
    'token audiences ["https://issuer.example"] is invalid for the target audiences ["vault"]',
  );
  clock.jumpWall(-120_000);
  assert.equal(await reason(tokens, token), "service account token is not valid yet");
  clock.jumpWall(120_000 + 661_000);
  assert.equal(await reason(tokens, token), "service account token has expired");
});

test("a token dies with its account and with the object that it is bound to", async () => {
  const objects = new Map(ACCOUNT);
  const { tokens, clock } = tokensOver(objects);
  const secret = object("Secret", "s", "u2");
  objects.set("secrets/n/s", secret);
  const claims = { ...CLAIMS, secret: { name: "s", uid: "u2" } };
  const token = await tokens.issue({ claims, audiences: [ISSUER], expirationSeconds: 600 });
  assert.equal(await reason(tokens, token), "user system:serviceaccount:n:sa");
  objects.set("secrets/n/s", object("Secret", "s", "u3"));
  assert.equal(
    await reason(tokens, token),
    "secret UID (u3) does not match service account secret ref claim (u2)",
  );
  objects.delete("secrets/n/s");
  assert.equal(await reason(tokens, token), "service account token has been invalidated");
  objects.set("secrets/n/s", secret);
  objects.set("serviceaccounts/n/sa", object("ServiceAccount", "sa", "other"));
  assert.equal(
    await reason(tokens, token),
    "service account UID (other) does not match claim (u1)",
  );
  const deletionTimestamp = new Date(clock.wallMs() - 61_000).toISOString();
  objects.set("serviceaccounts/n/sa", object("ServiceAccount", "sa", "u1", { deletionTimestamp }));
  assert.equal(await reason(tokens, token), "service account n/sa has been deleted");
  objects.delete("serviceaccounts/n/sa");
  assert.equal(await reason(tokens, token), 'serviceaccounts "sa" not found');
});

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

test("forged tokens are refused: no algorithm, a public key as a secret, other keys, changes", async () => {
  const { tokens } = tokensOver(new Map(ACCOUNT));
  const token = await tokens.issue({ claims: CLAIMS, audiences: [ISSUER], expirationSeconds: 600 });
  const [header, payload, signature] = token.split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url").toString()) as Record<
    string,
    unknown
  >;
  const { kid } = JSON.parse(Buffer.from(header, "base64url").toString()) as { kid: string };
  const none = `${encoded({ alg: "none", kid })}.${payload}.`;
  assert.notEqual(await reason(tokens, none), "user system:serviceaccount:n:sa");
  const secret = new TextEncoder().encode(String(keys.verification[0].publicJwk.x));
  const { SignJWT } = await import("jose");
  const confused = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid }).sign(secret);
  assert.equal(await reason(tokens, confused), "invalid signature");
  const other = serviceAccountKeys({ path: "other", pem: await newServiceAccountKeyPem() });
  const foreign = await tokensOver(new Map(ACCOUNT), undefined, other).tokens.issue({
    claims: CLAIMS,
    audiences: [ISSUER],
    expirationSeconds: 600,
  });
  assert.equal(await reason(tokens, foreign), "invalid signature, no keys found");
  const [, , otherSignature] = foreign.split(".");
  assert.match(await reason(tokens, `${header}.${payload}.${otherSignature}`), /signature/);
  const raised = encoded({ ...claims, sub: "system:serviceaccount:kube-system:admin" });
  assert.match(await reason(tokens, `${header}.${raised}.${signature}`), /signature/);
  for (const garbage of [
    "",
    "a.b.c",
    "..",
    `${header}..${signature}`,
    "x".repeat(20_000),
    `${header}.e30.x`,
  ]) {
    assert.equal(await reason(tokens, garbage), "not its own");
  }
});

test("a signed token with wrong claims proves nothing", async () => {
  const { tokens, clock } = tokensOver(new Map(ACCOUNT));
  const { SignJWT } = await import("jose");
  const nowSeconds = Math.floor(clock.wallMs() / 1000);
  const good = { iss: ISSUER, aud: [ISSUER], exp: nowSeconds + 600, "kubernetes.io": CLAIMS };
  const sign = (claims: Record<string, unknown>) =>
    new SignJWT(claims).setProtectedHeader({ alg: "ES256" }).sign(keys.signing.key);
  assert.equal(await reason(tokens, await sign(good)), "user system:serviceaccount:n:sa");
  const cases: [Record<string, unknown>, string][] = [
    [{ ...good, exp: undefined }, "service account token never expires"],
    [{ ...good, exp: "soon" }, "invalid token"],
    [{ ...good, "kubernetes.io": undefined }, "the claims name no service account"],
    [
      { ...good, "kubernetes.io": { ...CLAIMS, secret: "s" } },
      "the claims name no service account",
    ],
    [
      { ...good, "kubernetes.io": { namespace: "n", serviceaccount: { name: "sa" } } },
      "service account UID (u1) does not match claim ()",
    ],
    [{ ...good, iss: "https://other.example" }, "not its own"],
  ];
  for (const [claims, expected] of cases) {
    assert.equal(await reason(tokens, await sign(claims)), expected);
  }
});

test("RSA and EC keys sign; the key set shows only public parts", () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const rsa = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const both = serviceAccountKeys({ path: "rsa", pem: rsa }, [{ path: "ec", pem }]);
  assert.equal(both.signing.algorithm, "RS256");
  const { keySet, configuration } = openIdMetadata(
    ISSUER,
    `${ISSUER}/openid/v1/jwks`,
    both.verification,
  )!;
  const { keys: shown } = JSON.parse(Buffer.from(keySet).toString()) as { keys: object[] };
  assert.deepEqual(
    shown.map((one) => Object.keys(one).sort()),
    [
      ["alg", "e", "kid", "kty", "n", "use"],
      ["alg", "crv", "kid", "kty", "use", "x", "y"],
    ],
  );
  assert.deepEqual(JSON.parse(Buffer.from(configuration).toString()), {
    issuer: ISSUER,
    jwks_uri: `${ISSUER}/openid/v1/jwks`,
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["ES256", "RS256"],
  });
  assert.equal(openIdMetadata("http://plain", "https://x", both.verification), undefined);
  assert.throws(
    () => serviceAccountKeys({ path: "x.pem", pem: "no key" }),
    /x\.pem has no private key/,
  );
});

test("the token file is read as Go's CSV reader does", async () => {
  const warnings: string[] = [];
  const text = 'tok1,ann,1,"dev,ops"\r\n\n"to""k2",bob,2\n,without-token,3\ntok1,eve,4\n';
  const users = parseTokenFile(text, "tokens.csv", (it) => warnings.push(it));
  const tokens = staticTokens(users);
  const of = async (token: string) => (await tokens.authenticateToken(token, []))?.user.name;
  assert.deepEqual([await of("tok1"), await of('to"k2'), await of("")], ["eve", "bob", undefined]);
  assert.deepEqual(warnings, [
    "empty token has been found in token file 'tokens.csv', record number '3'",
    "duplicate token has been found in token file 'tokens.csv', record number '4'",
  ]);
  assert.throws(
    () => parseTokenFile("a,b\n", "t", () => {}),
    /token file 't' must have at least 3 columns \(token, user name, user uid\), found 2/,
  );
  assert.equal(typeof parseCsv('a,"b\n'), "string");
  assert.equal(typeof parseCsv('a,b"c\n'), "string");
  assert.deepEqual(parseCsv('x,"a\nb",\n'), [["x", "a\nb", ""]]);
  // A text that ends with a carriage return alone ended never.
  assert.deepEqual(parseCsv("a,b,c\r"), [["a", "b", "c"]]);
  assert.deepEqual(parseCsv("\r"), []);
  assert.deepEqual(parseCsv('"a"\r'), [["a"]]);
});

function authenticator(options = {}) {
  const users = parseTokenFile("good,ann,1,dev\n", "t", () => {});
  return new RequestAuthenticator(
    {
      clientCertificates: true,
      tokens: anyTokenAuthenticator([staticTokens(users)]),
      audiences: [ISSUER],
      allowAnonymous: true,
      ...options,
    },
    { logger: silentLogger, monotonicMs: () => 0 },
  );
}

test("a request has the user of its certificate, else of its token, else none", async () => {
  const auth = authenticator();
  const user = async (head: HttpHead): Promise<UserInfo | string> => {
    try {
      return (await auth.authenticate(head))!;
    } catch (error) {
      return `${(error as ApiError).httpStatus} ${(error as ApiError).message}`;
    }
  };
  const certificate = { peerCommonName: "kate", peerOrganizations: ["system:masters"] };
  assert.deepEqual(await user(headOf({}, certificate)), {
    name: "kate",
    uid: "",
    groups: ["system:masters", "system:authenticated"],
    extra: {},
  });
  const good = await user(headOf({ authorization: "bearer good" }));
  assert.deepEqual((good as UserInfo).groups, ["dev", "system:authenticated"]);
  assert.equal(((await user(headOf({}))) as UserInfo).name, "system:anonymous");
  assert.equal(await user(headOf({ authorization: "Bearer bad" })), "401 Unauthorized");
  assert.equal(await user(headOf({ authorization: "Bearer good, Bearer x" })), "401 Unauthorized");
  assert.equal(await user(headOf({}, { peerCertificateError: "expired" })), "401 Unauthorized");
  assert.equal(
    ((await user(headOf({ authorization: "Basic Z29vZA==" }))) as UserInfo).name,
    "system:anonymous",
  );
  const strict = authenticator({ allowAnonymous: false });
  await assert.rejects(async () => strict.authenticate(headOf({})), { message: "Unauthorized" });
});

test("the cache asks once for tokens that come together, forgets, and has a bound", async () => {
  const clock = new ManualClock();
  let checks = 0;
  const inner: TokenAuthenticator = {
    authenticateToken: async (token) => {
      checks++;
      if (token === "bad") throw new InvalidTokenError();
      return { user: userOf(token), audiences: [] };
    },
  };
  const cache = new TokenCache(inner, clock);
  await Promise.all([cache.authenticateToken("a", []), cache.authenticateToken("a", [])]);
  await cache.authenticateToken("a", []);
  assert.equal(checks, 1);
  await cache.authenticateToken("a", ["other"]);
  assert.equal(checks, 2);
  clock.advance(10_001);
  await cache.authenticateToken("a", []);
  assert.equal(checks, 3);
  for (let i = 0; i < 2; i++) await assert.rejects(cache.authenticateToken("bad", []));
  assert.equal(checks, 5);
  await assert.rejects(cache.authenticateToken("x".repeat(MAX_TOKEN_LENGTH + 1), []), /too long/);
  for (let i = 0; i < MAX_CACHED_TOKENS + 10; i++) await cache.authenticateToken(`t${i}`, []);
  assert.equal(cache.size, MAX_CACHED_TOKENS);
});

test("serviceaccounts/token issues what TokenReview accepts, within Kubernetes' bounds", async () => {
  const { world, clock, stop } = await startServer();
  const accounts = { group: "", version: "v1", resource: "serviceaccounts" };
  const metadata = { name: "builder" };
  await driven(
    clock,
    world.client.create(accounts, "default", {
      apiVersion: "v1",
      kind: "ServiceAccount",
      metadata,
    }),
  );
  const request = (spec: object, meta = {}) =>
    world.storage("", "serviceaccounts", "token").createNamed!(
      contextOf(MASTER, "default"),
      "builder",
      { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", metadata: meta, spec },
      async () => {},
      { dryRun: false, fieldManager: "", fieldValidation: "Strict" },
    );
  const issued = await driven(clock, request({ expirationSeconds: 700 }));
  const { token } = issued["status"] as { token: string };
  const review = {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenReview",
    metadata: {},
    spec: { token },
  };
  const reviewed = await driven(
    clock,
    world.create(MASTER, "tokenreviews", "", review, "authentication.k8s.io"),
  );
  const status = reviewed["status"] as { authenticated?: boolean; user: { username?: string } };
  assert.equal(status.authenticated, true);
  assert.equal(status.user.username, "system:serviceaccount:default:builder");
  const bad = { ...review, spec: { token: `${token}x` } };
  const refused = await driven(
    clock,
    world.create(MASTER, "tokenreviews", "", bad, "authentication.k8s.io"),
  );
  assert.equal((refused["status"] as { authenticated?: boolean }).authenticated, undefined);
  const fails = async (work: Promise<unknown>) =>
    (await driven(
      clock,
      work.catch((it: unknown) => it),
    )) as ApiError;
  assert.match(
    (await fails(request({ expirationSeconds: 10 }))).message,
    /may not specify a duration less than 10 minutes/,
  );
  assert.match(
    (await fails(request({}, { name: "x" }))).message,
    /must match the service account name if specified/,
  );
  assert.equal((await fails(request({}, { uid: "x" }))).httpStatus, 409);
  const ref = (kind: string, name: string) => ({
    boundObjectRef: { kind, apiVersion: "v1", name },
  });
  assert.equal((await fails(request(ref("Secret", "none")))).message, 'secrets "none" not found');
  assert.equal(
    (await fails(request(ref("ConfigMap", "x")))).message,
    "cannot bind token to object of type /v1, Kind=ConfigMap",
  );
  await stop();
});
