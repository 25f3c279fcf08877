/** The console's parts, over a member in memory: what they answer, to whom, and their bounds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { LogRing, openConsole } from "@quorate/console";
import {
  COLUMNS,
  folderOf,
  MAX_ANSWER_LINES,
  MAX_BODY_BYTES,
  MAX_CHANGES,
  MAX_CHILDREN,
  MAX_DECODED_BYTES,
  MAX_FIELD_CHARS,
  MAX_FOLDER_CHARS,
  MAX_FOLDERS,
  MAX_LOG_LINES,
  MAX_REPORT_BYTES,
  MAX_RUNNING_CALLS,
  MAX_SAMPLES,
  quantile,
  Rates,
  SAMPLE_MS,
} from "@quorate/console/testing";
import { type LogFields, type Logger, SeededRandom, silentLogger } from "@quorate/host";
import { ManualClock, MemoryExchange } from "@quorate/host/testing";
import type { Member } from "@quorate/member";
import { fromUtf8, KVService, toBase64, toUtf8 } from "@quorate/proto";
import { pageTable, serviceTable } from "@quorate/services";
import { callAs, enableAuth, login } from "./support/users.ts";
import { World } from "./support/world.ts";

const base64 = (text: string): string => toBase64(fromUtf8(text));
const text = (encoded: string): string => Buffer.from(encoded, "base64").toString("latin1");

interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what a test is about
  readonly body: any;
}

/** One member with its console. */
class Served {
  readonly world: World;
  readonly log: LogRing;
  member!: Member;
  /** What the others answer. */
  peer: () => Promise<{ status: number; body: Uint8Array }> = async () => {
    throw new Error("not reachable");
  };
  #routes!: ReturnType<ReturnType<typeof openConsole>["routes"]>;
  report!: ReturnType<typeof openConsole>["peerEndpoints"];

  constructor(size: number) {
    this.world = new World(size);
    this.log = new LogRing(this.world.clock);
  }

  async start(): Promise<this> {
    await this.world.startAll();
    this.member = this.world.nodes[0]!.member!;
    const { member } = this;
    const page = openConsole(member, {
      files: new Map([["index.html", "<!doctype html>"]]),
      log: this.log,
      callPeer: () => this.peer(),
      freeBytes: () => 7,
    });
    this.report = page.peerEndpoints;
    const services = serviceTable(member);
    this.#routes = page.routes({ services, pages: pageTable(member), observer: undefined });
    return this;
  }

  begin(
    path: string,
    body: string,
    { method = "POST", type = "application/json", token = "" } = {},
  ): MemoryExchange {
    const headers = new Map([["content-type", type]]);
    if (token !== "") headers.set("authorization", token);
    const exchange = new MemoryExchange({ method, path, headers });
    return exchange.serve(this.#routes.get("/console/")!, [fromUtf8(body)]);
  }

  async ask(name: string, body: unknown = {}, token = ""): Promise<Answer> {
    const exchange = this.begin(`/console/api/${name}`, JSON.stringify(body), { token });
    await this.world.settled(exchange.done);
    return { status: exchange.status!, body: JSON.parse(exchange.text) };
  }

  /** Writes keys, some of them in one transaction. */
  async put(keys: readonly string[], token?: string): Promise<void> {
    for (let at = 0; at < keys.length; at += 100) {
      const success = keys.slice(at, at + 100).map((key) => ({
        request: {
          case: "requestPut" as const,
          value: { key: fromUtf8(key), value: fromUtf8("v"), lease: 0n },
        },
      }));
      const request = { compare: [], success, failure: [] };
      await this.world.settled(callAs(this.member, token, KVService.methods.Txn, request as never));
    }
  }
}

test("files have a policy that allows no script in the markup, and nothing of others", async () => {
  const served = await new Served(1).start();
  const file = served.begin("/console/", "", { method: "GET" });
  assert.equal(file.status, 200);
  const policy = file.headers["content-security-policy"]!;
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
  assert.doesNotMatch(policy, /unsafe|data:|\*/);
  assert.equal(served.begin("/console/none.js", "", { method: "GET" }).status, 404);
  assert.equal(served.begin("/console/", "").status, 405);
  assert.equal(served.begin("/console/api/rates", "", { method: "GET" }).status, 405);
});

test("a call that is too long, of another type, of no JSON or of no name is refused", async () => {
  const served = await new Served(1).start();
  const status = async (path: string, body: string, type = "application/json") => {
    const exchange = served.begin(`/console/api/${path}`, body, { type });
    await served.world.settled(exchange.done);
    return exchange.status;
  };
  assert.equal(await status("rates", `{"a":"${"x".repeat(MAX_BODY_BYTES)}"}`), 429);
  assert.equal(await status("rates", "{}", "text/plain"), 400);
  for (const body of ["", "[]", "1", "{"]) assert.equal(await status("rates", body), 400);
  assert.equal(await status("nothing", "{}"), 404);
  assert.equal(await status("__proto__", "{}"), 404);
  assert.equal(await status("children", '{"prefix":"*"}'), 400);
  assert.equal(await status("top", '{"minutes":-1}'), 400);
});

test("calls at a time are bounded", async () => {
  const served = await new Served(1).start();
  const begun = Array.from({ length: MAX_RUNNING_CALLS + 1 }, () =>
    served.begin("/console/api/rates", "{}"),
  );
  assert.equal(begun.at(-1)!.status, 429);
  for (const one of begun.slice(0, -1)) {
    await served.world.settled(one.done);
    assert.equal(one.status, 200);
  }
  assert.equal((await served.ask("rates")).status, 200);
});

test("each call needs a user, keys their permission, and the log root", async () => {
  const served = await new Served(1).start();
  const root = await enableAuth(served.world, served.member, "ann");
  await served.put(["ann/a", "bob/b"], root);
  const ann = await served.world.settled(login(served.member, "ann"));
  const names = ["overview", "rates", "children", "top", "log", "decode", "changes"];
  for (const name of names)
    for (const token of ["", "forged"])
      assert.ok([400, 401].includes((await served.ask(name, {}, token)).status), name);
  const statuses = async (token: string, body: object) =>
    Promise.all(names.map(async (name) => (await served.ask(name, body, token)).status));
  assert.deepEqual(await statuses(ann, {}), [200, 200, 403, 403, 403, 200, 403]);
  assert.deepEqual(
    await statuses(ann, { prefix: base64("bob/") }),
    [200, 200, 403, 403, 403, 200, 403],
  );
  assert.deepEqual(
    await statuses(ann, { prefix: base64("ann/") }),
    [200, 200, 200, 200, 403, 200, 200],
  );
  assert.deepEqual(await statuses(root, {}), [200, 200, 200, 200, 200, 200, 200]);
});

test("parts of a folder have all its keys and folders, each once, in order", async () => {
  const served = await new Served(1).start();
  const random = new SeededRandom(31n);
  const pieces = ["a", "b", "/", "/", "\x7f", "cc"];
  const keys = new Set<string>();
  while (keys.size < 900) {
    const length = 1 + random.below(9);
    keys.add(Array.from({ length }, () => pieces[random.below(pieces.length)]).join(""));
  }
  for (let i = 0; i < 250; i++) keys.add(`wide/${i}`);
  await served.put([...keys]);
  for (const prefix of ["", "a/", "/", "wide/", "b", "none/"]) {
    const below = [...keys].filter((key) => key.startsWith(prefix)).sort();
    const expected = [...new Set(below.map((key) => folderOf(prefix, key) ?? key))];
    const found: string[] = [];
    let from: string | undefined;
    do {
      const { body } = await served.ask("children", { prefix: base64(prefix), from });
      assert.ok(body.children.length <= MAX_CHILDREN);
      found.push(...body.children.map(({ name }: { name: string }) => text(name)));
      from = body.next;
    } while (from !== undefined);
    assert.deepEqual(found, expected, JSON.stringify(prefix));
  }
  // As of an earlier revision, before there was anything.
  assert.deepEqual((await served.ask("children", { revision: 1 })).body.children, []);
});

test("the top has keys, bytes and writes of each folder", async () => {
  const served = await new Served(1).start();
  await served.put(["a/1", "a/2", "b/1", "c"]);
  // Beyond the time that writes are counted for.
  for (let i = 0; i < 8; i++) await served.world.run(SAMPLE_MS);
  await served.put(["a/1", "a/1x"]);
  await served.put(["a/1"]);
  const { body } = await served.ask("top", { minutes: 1 });
  const rows = Object.fromEntries(
    body.folders.map((one: { name: string }) => [text(one.name), one]),
  );
  assert.deepEqual(
    Object.entries(rows as Record<string, { keys: number; writes: number }>).map(
      ([name, { keys, writes }]) => [name, keys, writes],
    ),
    [
      ["a/", 3, 3],
      ["b/", 1, 0],
      ["", 1, 0],
    ],
  );
  assert.equal(body.total.keys, 5);
  assert.ok(rows["a/"].bytes > rows["b/"].bytes);
});

test("a difference has the keys of both revisions, each once", async () => {
  const served = await new Served(1).start();
  const { member } = served;
  const random = new SeededRandom(32n);
  const states: ReadonlyMap<string, number>[] = [];
  const now = new Map<string, number>();
  const first = member.store.mvcc.currentRevision;
  for (let revision = first + 1; revision <= first + 200; revision++) {
    const key = `d/${random.below(40)}`;
    if (random.below(3) > 0 || !now.has(key)) {
      await served.put([key]);
      now.set(key, revision);
    } else {
      const range = { key: fromUtf8(key), rangeEnd: fromUtf8(""), prevKv: false };
      await served.world.settled(callAs(member, undefined, KVService.methods.DeleteRange, range));
      now.delete(key);
    }
    assert.equal(member.store.mvcc.currentRevision, revision);
    states.push(new Map(now));
  }
  for (let i = 0; i < 50; i++) {
    const [a, b] = [random.below(states.length), random.below(states.length)].sort((x, y) => x - y);
    const [before, after] = [states[a!]!, states[b!]!];
    const ask = { prefix: base64("d/"), from: first + 1 + a!, to: first + 1 + b! };
    const { body } = await served.ask("changes", ask);
    const expected = [...new Set([...before.keys(), ...after.keys()])]
      .filter((key) => before.get(key) !== after.get(key))
      .map((key): [string, boolean, boolean] => [key, before.has(key), after.has(key)])
      .sort(([x], [y]) => (x < y ? -1 : 1));
    assert.deepEqual(
      (body as { rows: { name: string; before: unknown; after: unknown }[] }).rows.map((row) => [
        text(row.name),
        row.before !== null,
        row.after !== null,
      ]),
      expected,
    );
    const count = (had: boolean, has: boolean) =>
      expected.filter(([, x, y]) => x === had && y === has).length;
    assert.deepEqual(
      [body.added, body.changed, body.removed],
      [count(false, true), count(true, true), count(true, false)],
    );
  }
  const many = Array.from({ length: MAX_CHANGES + 7 }, (_, i) => `e/${i}`);
  await served.put(many);
  const { body } = await served.ask("changes", { prefix: base64("e/"), from: first });
  assert.deepEqual([body.added, body.rows.length], [MAX_CHANGES + 7, MAX_CHANGES]);
  assert.equal((await served.ask("changes", { from: 1e9 })).status, 400);
});

test("folders beyond the bound, and those with long names, count together", async () => {
  const served = await new Served(1).start();
  const many = Array.from({ length: MAX_FOLDERS + 5 }, (_, i) => `${i}/k`);
  await served.put([...many, `0${"n".repeat(MAX_FOLDER_CHARS)}/k`]);
  const { body } = await served.ask("top");
  assert.equal(body.total.keys, MAX_FOLDERS + 6);
  assert.ok(body.folders.length <= 150);
  assert.equal(body.others.keys, MAX_FOLDERS + 6 - body.folders.length);
});

test("samples are those of an hour, and rates a second's", async () => {
  const served = await new Served(1).start();
  const { metrics, store, watches } = served.member;
  // The world's own clock would run a member for an hour.
  const clock = new ManualClock();
  const measured = { clock, metrics, store, watches, pendingProposals: 0 };
  const rates = new Rates(measured as unknown as Member);
  metrics.clientSentBytes.add(50_000);
  clock.advance(SAMPLE_MS);
  const [first] = rates.samples();
  assert.equal(first!.values[COLUMNS.indexOf("sentBytes")], 5000);
  assert.equal(first!.values[COLUMNS.indexOf("syncP99")], null);
  metrics.walFsyncDuration.observe(0.003);
  clock.advance(SAMPLE_MS / 2);
  const partial = rates.samples().at(-1)!.values[COLUMNS.indexOf("syncP99")]!;
  assert.ok(partial > 2 && partial <= 4, String(partial));
  for (let i = 0; i < MAX_SAMPLES + 3; i++) clock.advance(SAMPLE_MS);
  assert.equal(rates.samples().length, MAX_SAMPLES + 1);
  rates.close();
  assert.equal(clock.nextDueMs(), undefined);
  assert.deepEqual((await served.ask("rates")).body.columns, [...COLUMNS]);
});

test("a quantile lies in its bucket", () => {
  assert.equal(quantile([1, 2, 4], [0, 0, 0, 0], 0.5), null);
  assert.equal(quantile([1, 2, 4], [10, 0, 0, 0], 0.5), 0.5);
  assert.equal(quantile([1, 2, 4], [0, 10, 10, 0], 0.5), 2);
  assert.equal(quantile([1, 2, 4], [0, 0, 10, 0], 0.75), 3.5);
  assert.equal(quantile([1, 2, 4], [0, 0, 0, 3], 0.99), 4);
});

test("the log's last lines are kept, cut, and go on to the logger", () => {
  const written: string[] = [];
  const note = (msg: string, fields?: LogFields) =>
    written.push(`${msg} ${JSON.stringify(fields)}`);
  const child = (): Logger => ({ ...silentLogger, warn: note, child });
  const ring = new LogRing({ wallMs: () => 5 });
  const logger = ring.around({ ...silentLogger, info: note, child });
  logger.debug("unseen");
  logger.child("part", { id: "1" }).warn("odd", { long: "x".repeat(10_000) });
  assert.equal(written.length, 1);
  const [line] = ring.after(0);
  assert.deepEqual(
    [line!.level, line!.caller, line!.msg, line!.wallMs],
    ["warn", "part", "odd", 5],
  );
  assert.equal(line!.fields.length, MAX_FIELD_CHARS);
  for (let i = 0; i < MAX_LOG_LINES + 10; i++) logger.info(`line ${i}`);
  const kept: string[] = [];
  for (let last = 0; ; ) {
    const part = ring.after(last);
    assert.ok(part.length <= MAX_ANSWER_LINES);
    if (part.length === 0) break;
    kept.push(...part.map(({ msg }) => msg));
    last = part.at(-1)!.sequence;
  }
  const expected = Array.from({ length: MAX_LOG_LINES }, (_, i) => `line ${i + 10}`);
  assert.deepEqual(kept, expected);
});

test("a member shows the reports of the others, and who gives none", async () => {
  const served = await new Served(3).start();
  const others = async () => {
    const { body } = await served.ask("overview");
    return body.members.filter(({ id }: { id: string }) => id !== body.self);
  };
  for (const one of await others()) assert.equal(one.error, "not reachable");
  served.peer = async () => ({ status: 404, body: fromUtf8("") });
  for (const one of await others()) assert.equal(one.error, "it runs without --console");
  served.peer = async () => ({ status: 200, body: new Uint8Array(MAX_REPORT_BYTES + 1) });
  for (const one of await others()) assert.equal(one.report, undefined);
  served.peer = async () => ({ status: 200, body: fromUtf8('{"role":"follower"}') });
  for (const one of await others()) assert.deepEqual(one.report, { role: "follower" });
  const [[path, handler] = []] = served.report;
  const head = { method: "GET", path: path!, query: "", headers: new Map(), peerAddress: "" };
  const asked = Promise.resolve(
    handler!({ ...head, body: fromUtf8(""), peerCommonName: undefined }),
  );
  const answer = await served.world.settled(asked);
  const report = JSON.parse(typeof answer.body === "string" ? answer.body : toUtf8(answer.body));
  assert.equal(report.freeBytes, 7);
  assert.match(report.role, /leader|follower/);
});

test("a value of Kubernetes is decoded, and no other", async () => {
  const served = await new Served(1).start();
  const { metaProtobuf, builtinKind } = await import("@quorate/kube-storage");
  const kind = builtinKind({ group: "", version: "v1", kind: "ConfigMap" })!;
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, data: { a: "1" } };
  const value = kind.codec.encode(object as never);
  const decode = async (bytes: Uint8Array) => {
    const encoded = Buffer.from(bytes).toString("base64");
    return (await served.ask("decode", { value: encoded })).body.yaml;
  };
  assert.match(await decode(value), /kind: ConfigMap\nmetadata:\n(?: .*\n)* {2}name: c/);
  assert.match(await decode(fromUtf8("k8s\0\xff\xff")), /^# no object of Kubernetes/);
  assert.match(await decode(fromUtf8("k8s:enc:kms:v2:vault:x")), /^# encrypted by the KMS plugin/);
  const long = metaProtobuf.wrap("v1", "ConfigMap", new Uint8Array(MAX_DECODED_BYTES));
  assert.equal(await decode(long), null);
});
