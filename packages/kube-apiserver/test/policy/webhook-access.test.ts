/** Webhooks for tokens and access: slow, gone, huge and wrong ones, and what is remembered. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock } from "@quorate/host/testing";
import { startApiServer } from "@quorate/kube-apiserver/node";
import { fromUtf8 } from "@quorate/proto";
import {
  MAX_REVIEW_BYTES,
  MAX_RUNNING_REVIEWS,
  RemoteReviews,
  type ReviewAnswer,
} from "../../src/authn/remote-reviews.ts";
import { MAX_CACHED_TOKENS, TokenCache } from "../../src/authn/request-authenticator.ts";
import { sha256HexOf } from "../../src/authn/token-file.ts";
import { WebhookTokens } from "../../src/authn/webhook-tokens.ts";
import { MAX_CACHED_DECISIONS, WebhookAuthorizer } from "../../src/authz/webhook-authorizer.ts";
import { exchange } from "../interop/rest/exchange.ts";
import { ReviewWebhook, type Said } from "../support/review-webhook.ts";

const AUDIENCE = "https://test";
const answered = (status: number, body: unknown, retryAfter = ""): ReviewAnswer => ({
  status,
  contentType: "application/json",
  retryAfter,
  body: fromUtf8(typeof body === "string" ? body : JSON.stringify(body)),
});

/** A webhook whose answers are given by hand. */
class Hook {
  readonly clock = new ManualClock();
  asked = 0;
  answer: () => ReviewAnswer | Promise<ReviewAnswer> = () => answered(200, { status: {} });

  reviews(kind: "TokenReview" | "SubjectAccessReview"): RemoteReviews {
    const group = kind === "TokenReview" ? "authentication.k8s.io" : "authorization.k8s.io";
    const post = async (): Promise<ReviewAnswer> => {
      this.asked++;
      return await this.answer();
    };
    const deps = { post, clock: this.clock, random: new SeededRandom(1n) };
    return new RemoteReviews({ group, kind, version: "v1" }, deps);
  }

  tokens(): TokenCache {
    const tokens = new WebhookTokens(this.reviews("TokenReview"), [AUDIENCE], () => {});
    return new TokenCache(tokens, this.clock, { ttlMs: 120_000, unknownTtlMs: 120_000 });
  }

  authorizer(): WebhookAuthorizer {
    return new WebhookAuthorizer(
      { allowedMs: 300_000, refusedMs: 30_000 },
      {
        reviews: this.reviews("SubjectAccessReview"),
        sha256Hex: sha256HexOf,
        nowMs: () => this.clock.monotonicMs(),
        logger: silentLogger,
      },
    );
  }

  /** Drives the clock until the work is done. */
  async driven<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    const over = (): void => {
      isOver = true;
    };
    work.then(over, over);
    while (!isOver) {
      this.clock.advance(100);
      await turn();
    }
    return await work;
  }
}

const user = { name: "ann", uid: "", groups: ["dev"], extra: {} };
const attributesFor = (name: string) => ({
  user,
  name,
  verb: "get",
  isResourceRequest: true,
  namespace: "a",
  group: "",
  version: "v1",
  resource: "configmaps",
  subresource: "",
  path: "/",
});

test("a webhook that is busy is asked five times, and one that refuses once", async () => {
  const hook = new Hook();
  const asked = async (answer: ReviewAnswer): Promise<[number, string]> => {
    hook.asked = 0;
    hook.answer = () => answer;
    const work = hook.reviews("TokenReview").review({ token: "t" }, {});
    const error = await hook.driven(work).then(
      () => assert.fail("the review did not fail"),
      (one: Error) => one.message,
    );
    return [hook.asked, error];
  };
  const quoted = '(\\"unknown\\")'.replaceAll("\\", "");
  assert.deepEqual(await asked(answered(500, "{}")), [
    5,
    `an error on the server ${quoted} has prevented the request from succeeding`,
  ]);
  for (const status of [429, 504]) assert.equal((await asked(answered(status, "")))[0], 5);
  for (const status of [400, 403, 404, 503])
    assert.equal((await asked(answered(status, "")))[0], 1);
  assert.equal((await asked(answered(503, "", "1")))[0], 5);
  const busy = { kind: "Status", status: "Failure", message: "busy", reason: "ServerTimeout" };
  assert.deepEqual(await asked(answered(400, busy)), [5, "busy"]);
});

test("one answer of several is enough, and what failed is not remembered", async () => {
  const hook = new Hook();
  const tokens = hook.tokens();
  let failures = 2;
  hook.answer = () =>
    failures-- > 0
      ? answered(500, "")
      : answered(200, { status: { authenticated: true, user: { username: "ann" } } });
  const identity = await hook.driven(tokens.authenticateToken("t", [AUDIENCE]));
  assert.equal(identity?.user.name, "ann");
  assert.equal(hook.asked, 3);
  hook.answer = () => answered(404, "");
  for (let i = 0; i < 2; i++)
    await assert.rejects(tokens.authenticateToken("x", [AUDIENCE]), /could not find/);
  assert.equal(hook.asked, 5);
});

test("users and refusals are remembered for their time, and neither takes the other's place", async () => {
  const hook = new Hook();
  const tokens = hook.tokens();
  hook.answer = () => answered(200, { status: { authenticated: true, user: { username: "a" } } });
  await tokens.authenticateToken("good", [AUDIENCE]);
  hook.answer = () => answered(200, { status: { authenticated: false } });
  for (let i = 0; i < MAX_CACHED_TOKENS + 10; i++)
    assert.equal(await tokens.authenticateToken(`bad${i}`, [AUDIENCE]), undefined);
  hook.asked = 0;
  assert.equal((await tokens.authenticateToken("good", [AUDIENCE]))?.user.name, "a");
  await tokens.authenticateToken(`bad${MAX_CACHED_TOKENS}`, [AUDIENCE]);
  assert.equal(hook.asked, 0);
  await tokens.authenticateToken("bad0", [AUDIENCE]);
  assert.equal(hook.asked, 1);
  hook.clock.advance(120_000);
  assert.equal(await tokens.authenticateToken("good", [AUDIENCE]), undefined);
  assert.equal(hook.asked, 2);
});

test("decisions are kept for their time, up to a number; long names are not", async () => {
  const hook = new Hook();
  const authorizer = hook.authorizer();
  const asks = async (name: string): Promise<number> => {
    hook.asked = 0;
    await authorizer.authorize(attributesFor(name));
    return hook.asked;
  };
  hook.answer = () => answered(200, { status: { allowed: true } });
  assert.deepEqual([await asks("a"), await asks("a"), await asks("b")], [1, 0, 1]);
  hook.answer = () => answered(200, { status: { allowed: false } });
  assert.deepEqual([await asks("c"), await asks("c")], [1, 0]);
  hook.clock.advance(30_000);
  assert.deepEqual([await asks("a"), await asks("c")], [0, 1]);
  hook.clock.advance(270_000);
  assert.equal(await asks("a"), 1);
  const long = "x".repeat(10_000);
  assert.deepEqual([await asks(long), await asks(long)], [1, 1]);
  for (let i = 0; i < MAX_CACHED_DECISIONS; i++) await asks(`n${i}`);
  assert.deepEqual([await asks("n0"), await asks("a")], [0, 1]);
});

test("few reviews are under way while a webhook hangs; others are refused", async () => {
  const hook = new Hook();
  const { promise, resolve } = Promise.withResolvers<ReviewAnswer>();
  hook.answer = () => promise;
  const tokens = hook.tokens();
  const waiting = Array.from({ length: MAX_RUNNING_REVIEWS }, (_, i) =>
    tokens.authenticateToken(`t${i}`, [AUDIENCE]),
  );
  await turn();
  await assert.rejects(tokens.authenticateToken("more", [AUDIENCE]), /too many reviews/);
  resolve(answered(200, { status: {} }));
  await Promise.all(waiting);
  assert.equal(await tokens.authenticateToken("more", [AUDIENCE]), undefined);
});

test("hostile webhooks over TLS: requests end in 401 and 500, and the server goes on", async () => {
  const said: Record<string, Said> = {
    huge: (response) => response.end(`{"a":"${"x".repeat(2 * MAX_REVIEW_BYTES)}"}`),
    deep: (response) => response.end("[".repeat(60_000)),
    "half an answer": (response) => {
      response.writeHead(200, { "content-length": 100 });
      response.write("{", () => response.destroy());
    },
    "no http": (response) => void response.socket?.end("hello\r\n\r\n"),
    moved: (response) => void response.writeHead(302, { location: "https://127.0.0.1:1/" }).end(),
    good: { authenticated: true, user: { username: "ann" } },
  };
  await using webhook = await ReviewWebhook.start(
    ({ spec }) => said[spec.token ?? spec.resourceAttributes?.name] ?? { allowed: false },
  );
  const { configFile, goneFile } = webhook;
  const start = (file: string) =>
    startApiServer({
      webhookTokens: { configFile: file, version: "v1", cacheTtlMs: 0 },
      authorizationModes: ["RBAC", "Webhook"],
      webhookDecisions: { configFile: file, version: "v1", allowedMs: 0, refusedMs: 0 },
    });
  await using api = await start(configFile);
  const get = async (url: string, token: string, path: string) => {
    const headers = { authorization: `Bearer ${token}` };
    return await exchange({ url, headers }, { method: "GET", path });
  };
  for (const token of Object.keys(said).filter((one) => one !== "good"))
    assert.equal((await get(api.url, encodeURIComponent(token), "/version")).status, 401, token);
  const maps = "/api/v1/namespaces/default/configmaps";
  for (const name of ["huge", "deep", "moved"]) {
    const { status, body } = await get(api.url, "good", `${maps}/${name}`);
    assert.equal(status, 500, name);
    assert.match(
      String(body),
      /^Internal Server Error: "\/api\/v1\/namespaces\/default\/configmaps/,
    );
  }
  assert.equal((await get(api.url, "good", `${maps}/other`)).status, 403);
  assert.equal((await get(api.url, "good", "/version")).status, 200);
  await using alone = await start(goneFile);
  assert.equal((await get(alone.url, "good", "/version")).status, 401);
  const review = await alone.request("/apis/authentication.k8s.io/v1/tokenreviews", {
    body: {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenReview",
      spec: { token: "t" },
    },
  });
  const url = "https://127.0.0.1:1/review?timeout=30s";
  assert.equal(
    review.body.status.error,
    `[invalid bearer token, Post "${url}": dial tcp 127.0.0.1:1: connect: connection refused]`,
  );
});
