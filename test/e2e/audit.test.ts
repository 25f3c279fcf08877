/** The audit log of a real member: who did what with which verdict, without secrets. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import {
  AuthService,
  fromUtf8,
  KVService,
  LeaseService,
  LockService,
  WatchService,
} from "@quorate/proto";
import { AuthClient, enableAuth, PASSWORD } from "../support/auth.ts";
import { startCluster, type TestCluster } from "../support/cluster.ts";
import { until } from "../support/until.ts";

type Line = Readonly<Record<string, unknown>>;

/** Runs a test with a member that writes an audit log. */
async function withMember(
  flags: readonly string[],
  run: (member: { client: AuthClient; cluster: TestCluster; lines: () => Line[] }) => Promise<void>,
): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), "quorate-audit-"));
  const path = join(dir, "audit.log");
  const cluster = await startCluster({
    size: 1,
    flags: [`--audit-log=${path}`, "--bcrypt-cost=4", ...flags],
  });
  const client = new AuthClient(cluster.members[0].clientAddress);
  const lines = (): Line[] =>
    readFileSync(path, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Line);
  try {
    await run({ client, cluster, lines });
  } finally {
    client.close();
    await cluster.destroy();
    rmSync(dir, { recursive: true });
  }
}

const { Put, Range, DeleteRange, Txn } = KVService.methods;
const key = fromUtf8;

/** Waits for the line of a call; lines are written behind the calls. */
async function lineOf(lines: () => Line[], what: Partial<Line>): Promise<Line> {
  let found: Line | undefined;
  await until(`a line with ${JSON.stringify(what)}`, () => {
    found = lines().find((line) =>
      Object.entries(what).every(([name, value]) => {
        return JSON.stringify(line[name]) === JSON.stringify(value);
      }),
    );
    return found !== undefined;
  });
  return found!;
}

describe("audit log", () => {
  test("a line has user, proof, address, method, keys, revision, verdict and time", async () => {
    await withMember([], async ({ client, lines }) => {
      await enableAuth(client, { ann: [["app/", "app0", "readwrite"]] });
      await client.login("ann");
      const { header } = await client.call(Put, { key: key("app/1"), value: key("v") });
      const line = await lineOf(lines, { method: "etcdserverpb.KV/Put", verdict: "ok" });
      const { time, address, ms, ...others } = line as Record<string, string>;
      assert.deepEqual(others, {
        user: "ann",
        proof: "token",
        method: "etcdserverpb.KV/Put",
        keys: [{ op: "put", key: "app/1" }],
        revision: header!.revision,
        verdict: "ok",
        code: "OK",
      });
      assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.match(address, /^127\.\d+\.\d+\.\d+:\d+$/);
      assert.ok(Number(ms) > 0);

      await client.try(Range, { key: key("x"), rangeEnd: Uint8Array.of(0) });
      const denied = await lineOf(lines, { method: "etcdserverpb.KV/Range", verdict: "denied" });
      assert.deepEqual(
        [denied["user"], denied["code"], denied["keys"]],
        ["ann", "PermissionDenied", [{ op: "get", key: "x", end: "\0" }]],
      );
      await client.try(AuthService.methods.Authenticate, { name: "ann", password: "wrong" });
      const failed = await lineOf(lines, {
        method: "etcdserverpb.Auth/Authenticate",
        verdict: "denied",
      });
      assert.deepEqual(failed["request"], { name: "ann" });
      await client.try(Range, { key: key("app/1") }, "no.such");
      const unknown = await lineOf(lines, { code: "Unauthenticated" });
      assert.equal(unknown["user"], undefined);
      assert.equal(unknown["verdict"], "denied");

      const create = { requestUnion: { case: "createRequest" as const, value: { key: key("y") } } };
      const stream = client.stream(WatchService.methods.Watch);
      stream.on("error", () => {});
      stream.write(Buffer.from(WatchService.methods.Watch.requestType.encode(create as object)));
      const watch = await lineOf(lines, { method: "etcdserverpb.Watch/Watch" });
      assert.deepEqual([watch["verdict"], watch["keys"]], ["denied", [{ op: "watch", key: "y" }]]);
      stream.cancel();
    });
  });

  test("no line has a password, a token or a value", async () => {
    await withMember(["--audit-level=request"], async ({ client, lines }) => {
      await enableAuth(client, { ann: [["\0", "\0", "readwrite"]] });
      const token = await client.login("root");
      const MARK = "MARKED";
      const { UserAdd, UserChangePassword } = AuthService.methods;
      await client.call(UserAdd, { name: "bob", password: MARK });
      await client.call(UserChangePassword, { name: "bob", password: MARK });
      const op = { request: { case: "requestPut", value: { key: key("t"), value: key(MARK) } } };
      const compare = {
        key: key("t"),
        target: 3,
        targetUnion: { case: "value", value: key(MARK) },
      };
      const txn = { compare: [compare], success: [op], failure: [op] };
      await client.call(Txn, txn as never);
      const put = { key: key("last"), value: key(MARK) };
      await client.call(Put, put);
      await client.call(Put, put);
      const line = await lineOf(lines, { method: "etcdserverpb.KV/Txn" });
      assert.deepEqual(
        (line["keys"] as { op: string }[]).map(({ op: name }) => name),
        ["compare", "put", "put"],
      );
      await until("both puts are written", () => {
        return lines().filter((one) => JSON.stringify(one).includes('"last"')).length === 2;
      });
      const all = lines();
      const text = JSON.stringify(all);
      for (const secret of [MARK, PASSWORD, token, Buffer.from(MARK).toString("base64")])
        assert.ok(!text.includes(secret), secret);
      const [one, other] = all
        .filter((each) => JSON.stringify(each).includes('"last"'))
        .map((each) => (each["keys"] as { valueHash: string; valueBytes: number }[])[0]);
      assert.equal(one.valueHash, other.valueHash);
      assert.match(one.valueHash, /^[0-9a-f]{32}$/);
      assert.equal(one.valueBytes, MARK.length);
    });
  });

  test("prefixes and sampling leave lines out; failures stay", async () => {
    const flags = ["--audit-prefixes=a/,b/", "--audit-read-sampling=10"];
    await withMember(flags, async ({ client, lines }) => {
      for (let i = 0; i < 20; i++) await client.call(Range, { key: key("a/x") });
      await client.try(Range, { key: key("a/x"), revision: 999 } as never);
      await client.call(Range, { key: key("c/x") });
      await client.call(DeleteRange, { key: key("a0"), rangeEnd: key("c") });
      await client.call(LeaseService.methods.LeaseGrant, { TTL: 60 } as never);
      await client.call(LockService.methods.Lock, { name: key("c/lock") });
      await client.call(Put, { key: key("a/end"), value: key("") });
      await lineOf(lines, { keys: [{ op: "put", key: "a/end" }] });
      const reads = lines().filter(({ method }) => method === "etcdserverpb.KV/Range");
      assert.deepEqual(
        reads.map(({ verdict }) => verdict),
        ["ok", "ok", "failed"],
      );
      const others = lines().map(({ method }) => String(method).split("/")[1]);
      assert.deepEqual(others.slice(3), ["DeleteRange", "LeaseGrant", "Put"]);
    });
  });

  test("a log that cannot be written: writes are refused, reads are not", {
    skip: existsSync("/dev/full") ? false : "there is no /dev/full",
  }, async () => {
    const flags = ["--audit-log=/dev/full", "--audit-on-failure=refuse"];
    await withMember(flags, async ({ client, cluster }) => {
      const put = { key: key("k"), value: key("v") };
      let refused = "";
      await until("a write is refused", async () => {
        refused = (await client.try(Put, put)).text;
        return refused !== "";
      });
      assert.equal(refused, "etcdserver: the audit log cannot be written");
      assert.equal((await client.call(Range, { key: key("k") })).kvs.length, 1);
      const text = await (await fetch(`${cluster.endpoints[0]}/metrics`)).text();
      assert.match(text, /^quorate_audit_refused_writes_total [1-9]/m);
      assert.match(text, /^quorate_audit_write_failures_total [1-9]/m);
    });
  });
});
