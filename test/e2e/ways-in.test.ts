/**
 * The same user by every way in (gRPC, the JSON gateway, /kv): the same verdicts, limits, metrics,
 * traces and audit lines. The member has TLS with --client-cert-auth, so that each connection has a
 * certificate; its name is a user by gRPC and /kv, and none by the gateway, as in etcd.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { AuthService, fromUtf8, KVService, toBase64 } from "@quorate/proto";
import { AuthClient, enableAuth, PASSWORD } from "../support/auth.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { OtlpCollector } from "../support/otlp-collector.ts";
import { until } from "../support/until.ts";

const { Put } = KVService.methods;
const TRACE = "0af7651916cd43dd8448eb211c8031";
type Headers = Readonly<Record<string, string>>;
const WAYS = ["grpc", "gateway", "kv"] as const;
type Way = (typeof WAYS)[number];

/** Denials by gRPC's code, and by the status of each way that speaks HTTP. */
const STATUS = {
  OK: { grpc: 0, gateway: 200, kv: 200 },
  PermissionDenied: { grpc: 7, gateway: 403, kv: 403 },
  Unauthenticated: { grpc: 16, gateway: 401, kv: 401 },
  UserEmpty: { grpc: 3, gateway: 400, kv: 401 },
} as const;
type Verdict = keyof typeof STATUS;

describe("every way in", () => {
  const dir = mkdtempSync(join(tmpdir(), "quorate-ways-"));
  const log = join(dir, "audit.log");
  const collector = new OtlpCollector();
  let cluster: TestCluster;
  let client: AuthClient;

  before(async () => {
    const flags = [
      "--bcrypt-cost=4",
      `--audit-log=${log}`,
      "--enable-distributed-tracing",
      `--distributed-tracing-address=${await collector.listen()}`,
    ];
    cluster = await startCluster({ size: 1, tls: true, flags });
    client = new AuthClient(cluster.members[0].clientAddress, cluster.identity);
    // The certificate's name is "client": a user, who may write below client/.
    await enableAuth(client, {
      ann: [["ann/", "ann0", "readwrite"]],
      client: [["client/", "client0", "readwrite"]],
    });
  });
  after(async () => {
    client?.close();
    await cluster?.destroy();
    await collector.close();
    rmSync(dir, { recursive: true });
  });

  /** A request over HTTPS with the client's certificate, and no header but these. */
  function https(method: string, path: string, headers: Headers, body: string) {
    return new Promise<{ status: number; text: string }>((resolve, reject) => {
      const url = `${cluster.members[0].clientUrl}${path}`;
      const sent = request(url, { method, headers, ...cluster.identity, agent: false }, (got) => {
        let text = "";
        got.on("data", (piece: Buffer) => {
          text += piece.toString();
        });
        got.on("end", () => resolve({ status: got.statusCode!, text }));
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }

  const bearer = (token: string | undefined): Headers =>
    token === undefined ? {} : { authorization: `Bearer ${token}` };
  const traced = (way: Way): string => `00-${TRACE}0${WAYS.indexOf(way)}-b7ad6b7169203331-01`;

  /** Puts a key. @param token undefined: with the certificate alone */
  async function put(way: Way, key: string, token: string | undefined): Promise<number> {
    if (way === "grpc") {
      const value = fromUtf8("v");
      return (await client.try(Put, { key: fromUtf8(key), value }, token)).code;
    }
    const headers = { ...bearer(token), traceparent: traced(way) };
    if (way === "kv") {
      const { status } = await https("PUT", `/kv/${key}`, headers, "v");
      // 201 for a key that was made, 204 for one that was changed.
      return status === 201 || status === 204 ? 200 : status;
    }
    const body = JSON.stringify({ key: toBase64(fromUtf8(key)), value: "dg==" });
    return (await https("POST", "/v3/kv/put", headers, body)).status;
  }

  async function token(name: string): Promise<string> {
    const { Authenticate } = AuthService.methods;
    const request = { name, password: PASSWORD };
    return (await client.try(Authenticate, request, undefined)).response!.token;
  }

  const lines = (): Readonly<Record<string, unknown>>[] =>
    readFileSync(log, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));

  test("verdicts, by token, certificate and neither", async () => {
    const ann = await token("ann");
    const root = await token("root");
    const expected: readonly [string, string | undefined, Record<Way, Verdict>][] = [
      ["ann/k", ann, { grpc: "OK", gateway: "OK", kv: "OK" }],
      ["other", ann, same("PermissionDenied")],
      ["client/k", ann, same("PermissionDenied")],
      ["other", root, same("OK")],
      ["ann/k", "abcdefghijklmnop.1", same("Unauthenticated")],
      // The certificate alone: a user, but by the gateway.
      ["client/k", undefined, { grpc: "OK", gateway: "UserEmpty", kv: "OK" }],
      [
        "ann/k",
        undefined,
        { grpc: "PermissionDenied", gateway: "UserEmpty", kv: "PermissionDenied" },
      ],
    ];
    for (const [key, proof, verdicts] of expected) {
      for (const way of WAYS) {
        const wanted = STATUS[verdicts[way]][way];
        assert.equal(await put(way, key, proof), wanted, `${way}, ${key}, ${proof ?? "none"}`);
      }
    }
  });

  test("audit lines name the same user, proof, keys and verdict", async () => {
    const ann = await token("ann");
    for (const way of WAYS) {
      await put(way, `ann/audit-${way}`, ann);
      await put(way, `audit-denied-${way}`, ann);
    }
    const about = (key: string) =>
      lines().find((line) => JSON.stringify(line.keys)?.includes(`"${key}"`));
    await until("all lines are written", () => about("audit-denied-kv") !== undefined);
    for (const [key, verdict] of [
      ["ann/audit", "ok"],
      ["audit-denied", "denied"],
    ]) {
      for (const way of WAYS) {
        const line = about(`${key}-${way}`)!;
        const { user, proof, certificate, method, verdict: found } = line;
        assert.deepEqual(
          [user, proof, certificate, method, found],
          ["ann", "token", "client", method, verdict],
          `${way}, ${key}`,
        );
      }
    }
    assert.ok(!readFileSync(log, "utf8").includes(ann), "a token is in the log");
  });

  test("calls are counted and traced as those of gRPC", async () => {
    const ann = await token("ann");
    const puts = async (): Promise<number> => {
      const { text } = await https("GET", "/metrics", {}, "");
      const pattern =
        /^grpc_server_handled_total\{grpc_code="OK",grpc_method="(?:Put|Txn)",[^}]*\} (\d+)$/gm;
      return [...text.matchAll(pattern)].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    for (const way of WAYS) {
      const before = await puts();
      assert.equal(await put(way, "ann/counted", ann), STATUS.OK[way]);
      assert.equal(await puts(), before + 1, way);
    }
    for (const way of ["gateway", "kv"] as const) {
      await until(`a span of ${way}`, () =>
        collector.spans.some(({ traceId }) => traceId === traced(way).slice(3, 35)),
      );
    }
  });

  test("failed logins of one user count together, whatever the way", async () => {
    const { Authenticate } = AuthService.methods;
    const wrong = { name: "ann", password: "wrong" };
    const basic = { authorization: `Basic ${btoa("ann:wrong")}` };
    const tries: readonly (() => Promise<number>)[] = [
      async () => (await client.try(Authenticate, wrong, undefined)).code,
      async () => (await https("POST", "/v3/auth/authenticate", {}, JSON.stringify(wrong))).status,
      async () => (await https("PUT", "/kv/ann/k", basic, "v")).status,
    ];
    // Some of each: the limit is ten for one user from one address.
    for (let i = 0; i < 4; i++) for (const one of tries) await one();
    assert.deepEqual(await Promise.all(tries.map((one) => one())), [8, 429, 429]);
  });
});

function same(verdict: Verdict): Record<Way, Verdict> {
  return { grpc: verdict, gateway: verdict, kv: verdict };
}
