/** /kv/KEY and /txn, request by request: what each comes to, and what hostile ones come to. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { MAX_TAGS, PROBLEMS } from "@quorate/http-kv/testing";
import type { Member } from "@quorate/member";
import { CompactionRequest, fromLatin1, GrpcCode, WatchService } from "@quorate/proto";
import { pageTable, serviceTable } from "@quorate/services";
import { PAGE_BOUNDS } from "@quorate/services/testing";
import { Audit } from "../src/audit/audit.ts";
import { lineSink } from "./support/audit-lines.ts";
import { KvClient, type KvRequest, problemIn, startedKv } from "./support/http-kv.ts";
import { call, type World } from "./support/world.ts";

let world: World;
let member: Member;
let kv: KvClient;

before(async () => {
  ({ world, member, kv } = await startedKv());
});

after(() => world.stopAll());

const problem = (method: string, target: string, request?: KvRequest) =>
  problemIn(kv, method, target, request);

/** The lines of a list. */
async function lines(target: string): Promise<{ key: unknown; value?: unknown }[]> {
  const { status, text } = await kv.ask("GET", target);
  assert.equal(status, 200, text);
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

test("a value comes back byte for byte, with its headers, and may have any type", async () => {
  const body = Uint8Array.from({ length: 256 }, (_, i) => i);
  const created = await kv.ask("PUT", "/kv/bytes", { body });
  assert.equal(created.status, 201);
  const got = await kv.ask("GET", "/kv/bytes");
  assert.deepEqual(new Uint8Array(Buffer.concat(got.pieces)), body);
  const revision = created.headers["quorate-revision"];
  for (const { headers } of [created, got]) {
    assert.equal(headers["etag"], `"${revision}"`);
    assert.equal(headers["quorate-create-revision"], revision);
    assert.equal(headers["quorate-mod-revision"], revision);
    assert.equal(headers["quorate-version"], "1");
    assert.equal(headers["quorate-lease"], undefined);
  }
  assert.equal(got.headers["content-type"], "application/octet-stream");
  assert.equal(got.headers["content-security-policy"], "sandbox; default-src 'none'");
  assert.equal(got.headers["x-content-type-options"], "nosniff");
  const typed = await kv.ask("GET", "/kv/bytes?type=image/svg%2Bxml");
  assert.equal(typed.headers["content-type"], "image/svg+xml");
  assert.equal((await kv.ask("PUT", "/kv/bytes", { body: "" })).status, 204);
  assert.equal((await kv.ask("GET", "/kv/bytes")).text, "");
});

test("HEAD is GET without the body", async () => {
  await kv.ask("PUT", "/kv/h", { body: "12345" });
  const { status, headers, pieces } = await kv.ask("HEAD", "/kv/h");
  assert.deepEqual([status, headers["content-length"], pieces.length], [200, "5", 0]);
  assert.equal((await kv.ask("HEAD", "/kv/h-none")).status, 404);
  assert.equal((await kv.ask("HEAD", "/kv/h-none")).text, "");
  assert.equal((await kv.ask("HEAD", "/kv/h?prefix")).text, "");
});

test("keys are percent-decoded bytes, slashes as they are", async () => {
  for (const [path, key] of [
    ["a%2Fb", "a/b"],
    ["a/c", "a/c"],
    ["/registry//x", "/registry//x"],
    ["..%2f..", "../.."],
    ["%00%ff", "\0\xff"],
    ["a+b", "a+b"],
    ["%C3%A9", "\xc3\xa9"],
    ["\xc3\xa9-raw", "\xc3\xa9-raw"],
  ]) {
    assert.equal((await kv.ask("PUT", `/kv/${path}`, { body: "x" })).status, 201, path);
    assert.notEqual(member.store.mvcc.view.get(key), undefined, path);
  }
});

test("reads at a revision, and below a compaction", async () => {
  const first = (await kv.ask("PUT", "/kv/old", { body: "1" })).headers["quorate-revision"];
  await kv.ask("PUT", "/kv/old", { body: "2" });
  assert.equal((await kv.ask("GET", `/kv/old?rev=${first}`)).text, "1");
  assert.equal((await lines(`/kv/old?prefix&rev=${first}`))[0].value, "1");
  assert.equal((await kv.ask("GET", "/kv/old?serializable")).text, "2");
  assert.equal((await problem("GET", "/kv/old?rev=999999")).type, "future-revision");
});

test("lists: text and base64, keys alone, limits, and where they continue", async () => {
  for (const key of ["l/a", "l/b", "l/%ff", "l/c"])
    await kv.ask("PUT", `/kv/${key}`, { body: key });
  await kv.ask("PUT", "/kv/l/b", { body: Uint8Array.of(0xff, 0) });
  const all = await lines("/kv/l/?prefix");
  assert.deepEqual(await lines("/kv?prefix&after=k%ff"), await lines("/kv/?prefix&after=k%ff"));
  const keys = ["l/a", "l/b", "l/c", { base64: "bC//" }];
  assert.deepEqual(
    all.map(({ key }) => key),
    keys,
  );
  assert.deepEqual(all[1].value, { base64: "/wA=" });
  assert.equal(
    (await lines("/kv/l/?prefix&keys")).some(({ value }) => value !== undefined),
    false,
  );
  const after = async (query: string) =>
    (await lines(`/kv/l/?prefix&${query}`)).map(({ key }) => key);
  assert.deepEqual(await after("limit=2"), keys.slice(0, 2));
  assert.deepEqual(await after("after=l/b&limit=1"), keys.slice(2, 3));
  assert.deepEqual(await after("after=k"), keys);
  assert.deepEqual(await after("after=l/%ff"), []);
  assert.deepEqual(await after("after=zzz"), []);
  assert.deepEqual(await lines("/kv/none?prefix"), []);
});

test("a U+FFFD of the text itself is text", async () => {
  await kv.ask("PUT", "/kv/fffd", { body: "\ufffd" });
  assert.equal((await lines("/kv/fffd?prefix"))[0].value, "\ufffd");
});

test("a lease is made by ?ttl, taken by ?lease, kept by ?lease=keep, and none by default", async () => {
  const made = await kv.ask("PUT", "/kv/t?ttl=100", { body: "1" });
  assert.equal(made.headers["quorate-ttl"], "100");
  const lease = made.headers["quorate-lease"];
  assert.match(lease, /^\d+$/);
  const hex = BigInt(lease).toString(16);
  assert.equal((await kv.ask("PUT", `/kv/t2?lease=0x${hex}`, {})).headers["quorate-lease"], lease);
  assert.equal((await kv.ask("PUT", "/kv/t?lease=keep", {})).headers["quorate-lease"], lease);
  assert.equal((await kv.ask("PUT", "/kv/t", {})).headers["quorate-lease"], undefined);
  assert.equal((await problem("PUT", "/kv/t?lease=12345")).type, "lease-not-found");
  assert.equal((await problem("PUT", "/kv/t?ttl=99999999999")).type, "bad-parameter");
  const { count } = member.store.lessor;
  const refused = await problem("PUT", "/kv/t?ttl=100", { headers: { "if-none-match": "*" } });
  assert.equal(refused.type, "precondition-failed");
  assert.equal(member.store.lessor.count, count, "the lease of a refused put is revoked");
  await kv.ask("PUT", "/kv/short?ttl=2", {});
  await world.run(5000);
  assert.equal((await problem("GET", "/kv/short")).type, "key-not-found");
});

test("deleting: one key, a prefix, and every key only on demand", async () => {
  for (const key of ["d/a", "d/b", "d/c"]) await kv.ask("PUT", `/kv/${key}`, {});
  assert.equal((await kv.ask("DELETE", "/kv/d/a")).status, 204);
  assert.equal((await problem("DELETE", "/kv/d/a")).type, "key-not-found");
  const { text, headers } = await kv.ask("DELETE", "/kv/d/?prefix");
  assert.deepEqual(JSON.parse(text), { deleted: 2, revision: Number(headers["quorate-revision"]) });
  assert.equal((await problem("DELETE", "/kv/?prefix")).type, "bad-key");
  const conditional = { headers: { "if-match": "1" } };
  assert.equal((await problem("DELETE", "/kv/d/?prefix", conditional)).type, "bad-precondition");
});

test("If-Match and If-None-Match, for reads and writes", async () => {
  const revision = async () =>
    Number((await kv.ask("HEAD", "/kv/c")).headers["quorate-mod-revision"]);
  const ask = async (method: string, headers: Record<string, string>) =>
    (await kv.ask(method, "/kv/c", { headers, ...(method === "PUT" && { body: "x" }) })).status;
  assert.equal(await ask("PUT", { "if-match": "*" }), 412);
  assert.equal(await ask("PUT", { "if-none-match": "*" }), 201);
  assert.equal(await ask("PUT", { "if-none-match": "*" }), 412);
  assert.equal(await ask("PUT", { "if-match": `"${await revision()}"` }), 204);
  assert.equal(await ask("PUT", { "if-match": `1, ${await revision()}` }), 204);
  assert.equal(await ask("PUT", { "if-match": `W/"${await revision()}"` }), 412);
  assert.equal(await ask("PUT", { "if-match": '"of-another-store"' }), 412);
  assert.equal(await ask("PUT", { "if-match": "*", "if-none-match": '"1"' }), 204);
  assert.equal(await ask("PUT", { "if-none-match": `"${await revision()}"` }), 412);
  assert.equal(await ask("GET", { "if-none-match": `W/"${await revision()}", "1"` }), 304);
  assert.equal(await ask("GET", { "if-none-match": '"1"' }), 200);
  assert.equal(await ask("GET", { "if-match": '"1"' }), 412);
  assert.equal(await ask("GET", { "if-match": `1, "${await revision()}"` }), 200);
  assert.equal(await ask("GET", { "if-match": `W/"${await revision()}"` }), 412);
  assert.equal(await ask("DELETE", { "if-match": '"1"' }), 412);
  const { headers, mod_revision } = await problem("PUT", "/kv/c", { headers: { "if-match": "1" } });
  assert.equal(headers["etag"], `"${await revision()}"`);
  assert.equal(mod_revision, await revision());
  assert.equal(await ask("DELETE", { "if-match": `${await revision()}` }), 204);
  assert.equal(await ask("DELETE", { "if-match": "*" }), 412);
});

test("what is malformed is refused, with what would be right", async () => {
  const tags = Array.from({ length: MAX_TAGS + 1 }, (_, i) => i + 1).join(",");
  const cases: [string, string, string, KvRequest?][] = [
    ["GET", "/kv/", "bad-key"],
    ["PUT", "/kv", "bad-key"],
    ["GET", "/watch", "bad-key"],
    ["GET", "/kv/%", "bad-key"],
    ["GET", "/kv/a%4", "bad-key"],
    ["GET", "/kv/a%zz", "bad-key"],
    ["PUT", "/kv/", "bad-key"],
    ["GET", "/kv/a?prefx", "bad-parameter"],
    ["GET", "/kv/a?rev=1&rev=2", "bad-parameter"],
    ["GET", "/kv/a?rev=0", "bad-parameter"],
    ["GET", "/kv/a?rev=-1", "bad-parameter"],
    ["GET", "/kv/a?rev=1e3", "bad-parameter"],
    ["GET", "/kv/a?rev=9007199254740993", "bad-parameter"],
    ["GET", "/kv/a?prefix=maybe", "bad-parameter"],
    ["GET", "/kv/a?limit=1", "bad-parameter"],
    ["GET", "/kv/a?prefix&type=a/b", "bad-parameter"],
    ["GET", "/kv/a?type=text", "bad-parameter"],
    ["GET", "/kv/a?type=a/b%0d%0ax:y", "bad-parameter"],
    ["GET", "/kv/a?prefix&after=%f", "bad-parameter"],
    ["PUT", "/kv/a?ttl=0", "bad-parameter"],
    ["PUT", "/kv/a?ttl=1&lease=1", "bad-parameter"],
    ["PUT", "/kv/a?lease=9223372036854775808", "bad-parameter"],
    ["PUT", "/kv/a?rev=1", "bad-parameter"],
    ["DELETE", "/kv/a?all", "bad-parameter"],
    ["PUT", "/kv/a", "bad-precondition", { headers: { "if-match": "" } }],
    ["PUT", "/kv/a", "bad-precondition", { headers: { "if-match": "0" } }],
    ["PUT", "/kv/a", "bad-precondition", { headers: { "if-match": '"5' } }],
    ["PUT", "/kv/a", "bad-precondition", { headers: { "if-match": "five" } }],
    ["PUT", "/kv/a", "bad-precondition", { headers: { "if-match": '"5" "6"' } }],
    ["PUT", "/kv/a", "bad-precondition", { headers: { "if-none-match": tags } }],
    ["PATCH", "/kv/a", "method-not-allowed"],
    ["GET", "/txn", "method-not-allowed"],
    ["POST", "/txn?x", "bad-parameter"],
    ["GET", "/watch/", "bad-key"],
    ["GET", "/watch/a?from=0", "bad-parameter"],
    ["GET", "/watch/a?only=gets", "bad-parameter"],
    ["GET", "/watch/a", "bad-parameter", { headers: { "last-event-id": "x" } }],
  ];
  assert.match((await problem("PUT", "/kv/a?ttl=9000000001")).detail, /from 1 to 9000000000$/);
  const { currentRevision } = member.store.mvcc;
  for (const [method, target, type, request] of cases) {
    const found = await problem(method, target, request);
    assert.equal(found.type, type, `${method} ${target}: ${found.detail}`);
    assert.match(found.detail, /^.+; .+$/, "what was wrong; what would be right");
    assert.ok(found.detail.length < 700);
  }
  assert.equal(member.store.mvcc.currentRevision, currentRevision);
});

test("a huge key is shown cut, a huge body is refused as it comes, and memory runs out politely", async () => {
  const long = await problem("GET", `/kv/${"k".repeat(100_000)}?x`);
  assert.ok(long.detail.length < 300);
  const { maxRequestBytes } = member.config;
  const announced = { headers: { "content-length": String(maxRequestBytes + 1) } };
  const refused = kv.exchange("PUT", "/kv/big", announced);
  refused.serve(kv.handler(refused), [], true);
  assert.equal(refused.status, 413, "before the body");
  const piece = new Uint8Array(1 << 18);
  const pieces = Array.from({ length: maxRequestBytes / piece.length + 1 }, () => piece);
  const streamed = kv.exchange("PUT", "/kv/big");
  streamed.serve(kv.handler(streamed), pieces);
  assert.equal(streamed.status, 413);
  const poor = kv.exchange("PUT", "/kv/big");
  poor.holdBudgetBytes = 10;
  poor.serve(kv.handler(poor), [piece]);
  assert.equal(poor.status, 503);
  assert.equal((await problem("GET", "/kv/big")).type, "key-not-found");
  // The gRPC request around a body that just fits is too large for the log.
  const whole = new Uint8Array(maxRequestBytes);
  const status = (await kv.ask("PUT", "/kv/big", { body: whole })).status;
  assert.ok(status === 201 || status === 413, `${status}`);
});

test("a list of many pages is sent at the client's pace, at one revision, and stops with it", async () => {
  const count = 3 * PAGE_BOUNDS.maxKeys;
  const txn = member.store.mvcc.beginLong();
  for (let i = 0; i < count; i++) {
    const key = `many/${String(i).padStart(6, "0")}`;
    txn.put(fromLatin1(key), key, fromLatin1("v"), 0n);
  }
  txn.commit();
  const slow = kv.exchange("GET", "/kv/many/?prefix");
  slow.sendBudgetBytes = 0;
  slow.serve(kv.handler(slow));
  await world.run(50);
  const sent = slow.pieces.length;
  assert.ok(sent <= 1, "one piece waits for the client");
  // Written while the list is read: it is not in the list.
  await kv.ask("PUT", "/kv/many/000000x", { body: "late" });
  slow.sendBudgetBytes = Number.POSITIVE_INFINITY;
  slow.listener.drained?.();
  await world.settled(slow.done);
  const keys = slow.text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line).key);
  assert.equal(keys.length, count);
  assert.equal(keys.includes("many/000000x"), false);
  const gone = kv.exchange("GET", "/kv/many/?prefix");
  gone.sendBudgetBytes = 0;
  gone.serve(kv.handler(gone));
  await world.run(50);
  const reads = member.store.mvcc.view.counts.ranges;
  gone.listener.aborted?.();
  await world.run(50);
  assert.equal(
    member.store.mvcc.view.counts.ranges,
    reads,
    "no page is read for a client that left",
  );
  // A compaction amid the list: the last line says so, and the response is cut off.
  const cut = kv.exchange("GET", "/kv/many/?prefix");
  cut.sendBudgetBytes = 0;
  cut.serve(kv.handler(cut));
  await world.run(50);
  await kv.ask("PUT", "/kv/many/000000x", { body: "later" });
  const compaction = CompactionRequest.encode({ revision: member.store.mvcc.currentRevision });
  await world.settled(call(member, "/etcdserverpb.KV/Compact", compaction));
  cut.sendBudgetBytes = Number.POSITIVE_INFINITY;
  cut.listener.drained?.();
  await world.settled(cut.done);
  assert.equal(cut.state, "aborted");
  const last = JSON.parse(cut.text.split("\n").at(-2)!);
  assert.equal(last.error.type, "urn:quorate:problem:compacted");
});

test("each request is calls of the services, with what is around them, and is counted", async () => {
  const calls: string[] = [];
  const lines: string[] = [];
  const audit = new Audit(
    { level: "metadata", prefixes: [], readSampling: 1, onFailure: "drop" },
    {
      clock: world.clock,
      sink: lineSink((line) => void lines.push(line)),
      identityOf: () => undefined,
      hashValue: () => "",
    },
  );
  const client = new KvClient(world, member, {
    services: audit.around(serviceTable(member)),
    pages: audit.around(pageTable(member)),
    observer: {
      started: (path) => void calls.push(`started ${path}`),
      handled: (path, code) => void calls.push(`${code} ${path}`),
      messageReceived: () => {},
      messageSent: () => {},
    },
  });
  for (const [method, target, paths] of [
    ["PUT", "/kv/audited", ["0 KV/Put"]],
    ["GET", "/kv/audited", ["0 KV/Range"]],
    ["GET", "/kv/audited?prefix", ["0 KV/Range"]],
    ["GET", "/kv/audited?rev=1000000", ["11 KV/Range"]],
    ["PUT", "/kv/audited?ttl=60", ["0 Lease/LeaseGrant", "0 KV/Put"]],
    ["DELETE", "/kv/audited", ["0 KV/DeleteRange"]],
  ] as const) {
    calls.length = 0;
    lines.length = 0;
    await client.ask(method, target, { peerAddress: "10.1.2.3:4" });
    const wanted = paths.flatMap((one) => {
      const [code, name] = one.split(" ");
      return [`started /etcdserverpb.${name}`, `${code} /etcdserverpb.${name}`];
    });
    assert.deepEqual(calls, wanted, `${method} ${target}`);
    assert.equal(lines.length, paths.length, "one line for each call");
    assert.ok(lines.every((line) => line.includes("10.1.2.3:4")));
  }
  calls.length = 0;
  const stream = client.start("GET", "/watch/audited");
  await world.run(5);
  stream.listener.aborted?.();
  await world.run(5);
  const { path } = WatchService.methods.Watch;
  assert.deepEqual(calls, [`started ${path}`, `${GrpcCode.Canceled} ${path}`]);
});

test("clients that race to compare and swap lose no increment", async () => {
  await kv.ask("PUT", "/kv/counter", { body: "0" });
  const CLIENTS = 20;
  const EACH = 5;
  const increment = async (peerAddress: string): Promise<void> => {
    for (;;) {
      const got = kv.start("GET", "/kv/counter", { peerAddress });
      await got.done;
      const headers = { "if-match": got.headers["etag"] };
      const body = String(Number(got.text) + 1);
      const put = kv.start("PUT", "/kv/counter", { peerAddress, headers, body });
      await put.done;
      if (put.status === 204) return;
      assert.equal(put.status, 412);
    }
  };
  const client = async (i: number) => {
    for (let n = 0; n < EACH; n++) await increment(`10.0.0.${i}:1`);
  };
  await world.settled(Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i))));
  assert.equal((await kv.ask("GET", "/kv/counter")).text, String(CLIENTS * EACH));
});

test("docs/guide/http.md lists every type of problem with its status", () => {
  const guide = readFileSync(join(import.meta.dirname, "../../../docs/guide/http.md"), "utf8");
  const rows = [...guide.matchAll(/^\| `([a-z-]+)` \| (\d{3}) \|/gm)].map(([, name, status]) => [
    name,
    Number(status),
  ]);
  assert.deepEqual(
    rows,
    Object.entries(PROBLEMS).map(([name, { status }]) => [name, status]),
  );
});
