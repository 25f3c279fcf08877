/** Namespaces, codecs and transactions, on real members. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytes,
  ConflictError,
  type EntryChange,
  InvalidValueError,
  json,
  opGet,
  opPut,
  type StandardSchema,
  text,
  toUtf8,
} from "@quorate/client";
import { onEachServer } from "./servers.ts";

interface Port {
  readonly port: number;
}

/** A schema as libraries make it: it takes a port as a text too, and checks it in a later turn. */
const portSchema: StandardSchema<{ readonly port: number | string }, Port> = {
  "~standard": {
    version: 1,
    vendor: "test",
    async validate(value) {
      const port = Number((value as { port?: unknown } | null)?.port);
      return Number.isInteger(port)
        ? { value: { port } }
        : { issues: [{ message: "expected an integer", path: ["port"] }] };
    },
  },
};

onEachServer(import.meta.filename, (server) => {
  test("values are texts, bytes or JSON, below a prefix", async () => {
    const client = server.connect();
    const texts = client.namespace("t/", text);
    const revision = await texts.put("a", "é");
    const entry = await texts.get("a");
    assert.deepEqual(
      [entry?.key, entry?.value, entry?.revision, toUtf8(entry!.kv.key)],
      ["a", "é", revision, "t/a"],
    );
    assert.equal(await texts.get("b"), undefined);
    await client.namespace("b/", bytes).put("a", Uint8Array.of(0xff));
    assert.deepEqual((await client.namespace("b/", bytes).get("a"))?.value, Uint8Array.of(0xff));
    const lists = client.namespace("j/", json<readonly number[]>());
    await lists.put("a", [1, 2]);
    assert.deepEqual((await lists.get("a"))?.value, [1, 2]);
    assert.deepEqual([await lists.delete("a"), await lists.delete("a")], [true, false]);
  });

  test("a schema checks what is written and what is read, and makes of it what it says", async () => {
    const client = server.connect();
    const ports = client.namespace("s/", json(portSchema));
    await ports.put("web", { port: "80" });
    const port: number | undefined = (await ports.get("web"))?.value.port;
    assert.equal(port, 80);
    assert.equal(toUtf8((await client.get("s/web")).kvs[0]!.value), '{"port":"80"}');
    await assert.rejects(ports.put("web", { port: "many" }), {
      name: "InvalidValueError",
      code: "InvalidValue",
      key: "s/web",
      message: "s/web: port: expected an integer",
    });
    await client.put("s/web", "{");
    await assert.rejects(ports.get("web"), InvalidValueError);
  });

  test("entries and changes have the namespace's keys and values", async () => {
    const client = server.connect();
    const lists = client.namespace("l/", json<number>());
    await lists.put("a", 1);
    await lists.put("b", 2);
    const all: [string, number][] = [];
    for await (const { key, value } of lists.entries()) all.push([key, value]);
    assert.deepEqual(all, [
      ["a", 1],
      ["b", 2],
    ]);
    const seen: EntryChange<number>[] = [];
    for await (const change of lists.follow()) {
      seen.push(change);
      if (change.kind === "synced") {
        await lists.put("a", 3);
        await lists.delete("b");
      }
      if (change.kind === "delete") break;
    }
    assert.deepEqual(
      seen.map((change) => [
        change.kind,
        "key" in change ? change.key : "",
        "value" in change ? change.value : 0,
      ]),
      [
        ["put", "a", 1],
        ["put", "b", 2],
        ["synced", "", 0],
        ["put", "a", 3],
        ["delete", "b", 0],
      ],
    );
  });

  test("the types of a transaction's results follow its operations", async () => {
    const client = server.connect();
    await client.put("x/a", "1");
    const parts = { success: [opGet("x/a"), opPut("x/b", "2", { prevKv: true })] } as const;
    const { succeeded, responses } = await client.txn(parts);
    assert.ok(succeeded);
    const [{ result: read }, { result: written }] = responses;
    assert.equal(toUtf8(read.kvs[0]!.value), "1");
    assert.equal(written.prevKv, undefined);
  });

  test("transactions that meet run again, and none is lost", async () => {
    const client = server.connect();
    const counts = client.namespace("n/", json<number>());
    let runs = 0;
    const increment = () =>
      client.transaction(
        async (transaction) => {
          runs++;
          const mine = counts.within(transaction);
          await mine.put("c", ((await mine.get("c")) ?? 0) + 1);
        },
        { maxAttempts: 100 },
      );
    await Promise.all(Array.from({ length: 12 }, increment));
    assert.equal((await counts.get("c"))?.value, 12);
    assert.ok(runs > 12, "some met");
  });

  test("a transaction reads one revision, sees its own writes, and writes all or nothing", async () => {
    const client = server.connect();
    await client.put("w/a", "1");
    await client.put("w/b", "1");
    const seen = await client.transaction(async (t) => {
      const a = await t.getText("w/a");
      // Another changes b between the reads; this transaction does not write, so it is not refused.
      await client.put("w/b", "2");
      return [a, await t.getText("w/b")];
    });
    assert.deepEqual(seen, ["1", "1"]);
    let attempts = 0;
    const result = await client.transaction(async (t) => {
      attempts++;
      const b = await t.getText("w/b");
      if (attempts === 1) await client.put("w/b", "3");
      t.put("w/a", `${b}!`);
      t.delete("w/b");
      return [b, await t.getText("w/a"), await t.getText("w/b")];
    });
    assert.deepEqual([result, attempts], [["3", "3!", undefined], 2]);
    assert.equal(toUtf8((await client.get("w/a")).kvs[0]!.value), "3!");
    assert.equal((await client.get("w/b")).count, 0);
    await assert.rejects(
      client.transaction(async (t) => {
        t.put("w/a", "never");
        throw new Error("no");
      }),
      /^Error: no$/,
    );
    assert.equal(toUtf8((await client.get("w/a")).kvs[0]!.value), "3!");
  });

  test("a write over what others wrote since the first read is a conflict, and attempts are bounded", async () => {
    const client = server.connect();
    const meeting = client.transaction(
      async (t) => {
        await t.get("v/read");
        await client.put("v/written", "theirs");
        t.put("v/written", "mine");
      },
      { maxAttempts: 3 },
    );
    await assert.rejects(meeting, (error) => {
      assert.ok(error instanceof ConflictError);
      assert.match(error.message, /each of 3 attempts/);
      return true;
    });
    assert.equal(toUtf8((await client.get("v/written")).kvs[0]!.value), "theirs");
  });
});
