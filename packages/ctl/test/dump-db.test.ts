/**
 * quorateutl dump-db. The text in fixtures/dump-db-etcd-3.8.0.txt.gz was compared by hand with that
 * of etcd-dump-db on the same file, which etcd wrote: it is the same but for spaces within
 * messages, which Go puts at random.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { runProgram } from "@quorate/cli";
import { FakeIo } from "@quorate/cli/testing";
import { levelKeyspaces } from "@quorate/host/node";
import { fromUtf8, KeyValue } from "@quorate/proto";
import { FILE_BUCKETS } from "@quorate/store";
import fc from "fast-check";
import type { BucketRecord, BucketSource } from "../src/dump/bucket-source.ts";
import { decodedText, reversedRecords } from "../src/dump/db.ts";
import { quorateutl } from "../src/quorateutl.ts";

const scratch = mkdtempSync(join(tmpdir(), "quorate-dump-db-"));
after(() => rmSync(scratch, { recursive: true }));

const unzipped = (path: string): Buffer =>
  gunzipSync(readFileSync(join(import.meta.dirname, path)));
const file = join(scratch, "etcd.db");
writeFileSync(file, unzipped("../../store/test/fixtures/etcd-3.8.0.db.gz"));

const buckets = [
  "alarm",
  "auth",
  "authRoles",
  "authUsers",
  "cluster",
  "key",
  "lease",
  "members",
  "members_removed",
  "meta",
];

async function run(...argv: string[]): Promise<{ code: number; out: string; err: string }> {
  const io = new FakeIo();
  const code = await runProgram(quorateutl, argv, io);
  return { code, out: io.out, err: io.err };
}

/** The output of dump-db. */
async function dump(...args: string[]): Promise<string> {
  const { code, out, err } = await run("dump-db", ...args);
  assert.deepEqual([code, err], [0, ""], args.join(" "));
  return out;
}

test("a file of etcd: its buckets, raw and decoded, all records of keys with their pages, its hash", async () => {
  let all = "";
  for (const bucket of buckets) {
    all += `# ${bucket}\n${await dump("iterate-bucket", file, bucket)}`;
    all += `# ${bucket} --decode\n${await dump("iterate-bucket", file, bucket, "--decode")}`;
  }
  all += `# list-bucket\n${await dump("list-bucket", file)}# scan-keys\n${await dump("scan-keys", file, "2")}`;
  const [path, hash] = (await dump("hash", file)).split("\n");
  assert.equal(path, `db path: ${file}`);
  // Go writes lists of records with two spaces where its text form does.
  assert.equal(
    `${all.replace(/ {2,}/g, " ")}# hash\n${hash}\n`,
    unzipped("fixtures/dump-db-etcd-3.8.0.txt.gz").toString(),
  );
});

test("a member's store has the same records as the file that it was made from", async () => {
  const dataDir = join(scratch, "member");
  const restored = await run(
    "snapshot",
    "restore",
    file,
    "--data-dir",
    dataDir,
    "--skip-hash-check",
  );
  assert.equal(restored.code, 0, restored.err);
  for (const bucket of ["key", "auth", "authRoles", "authUsers", "alarm"]) {
    for (const flags of [[], ["--decode"], ["--limit=2"]]) {
      const ours = await dump("iterate-bucket", dataDir, bucket, ...flags);
      assert.equal(
        ours,
        await dump("iterate-bucket", file, bucket, ...flags),
        `${bucket} ${flags}`,
      );
      if (bucket === "key")
        assert.ok(ours.split("\n").length > (flags[0] === "--limit=2" ? 2 : 20));
    }
  }
  assert.equal(await dump("list-bucket", dataDir), `${buckets.join("\n")}\n`);
  assert.match(
    await dump("hash", join(dataDir, "member/store")),
    /^db path: .*member\/store\/db\nHash: \d+\n$/,
  );
  // From the oldest to the newest, as they stand in the store.
  const scanned = (await dump("scan-keys", dataDir, "60")).trimEnd().split("\n");
  assert.deepEqual(
    scanned,
    (await dump("iterate-bucket", dataDir, "key", "--decode", `--limit=${scanned.length}`))
      .trimEnd()
      .split("\n")
      .reverse(),
  );
  assert.match(scanned[0], /^rev=\{Revision:\{Main:60 Sub:0\}/);

  // A locked store is waited for, then reported.
  const held = await levelKeyspaces.open(join(dataDir, "member/store/db"), { create: false });
  try {
    const refused = await run("dump-db", "list-bucket", dataDir, "--timeout=150ms");
    assert.equal(refused.code, 1);
    assert.match(
      refused.err,
      /^Error: .*member\/store\/db: the backend is open in another process/,
    );
    const waiting = run("dump-db", "list-bucket", dataDir);
    await held.close();
    assert.equal((await waiting).code, 0);
  } finally {
    await held.close().catch(() => {});
  }
});

test("--decode k8s: values of Kubernetes are YAML, all else is in comments", async () => {
  // Neither --decode alone nor a word behind it is anything new.
  assert.equal(
    await dump("iterate-bucket", "--decode", file, "key"),
    await dump("iterate-bucket", file, "key", "--decode=true"),
  );
  const dataDir = join(scratch, "of-kubernetes");
  mkdirSync(join(dataDir, "member/store/db"), { recursive: true });
  const database = await levelKeyspaces.open(join(dataDir, "member/store/db"), { create: true });
  const object = { apiVersion: "example.org/v1", kind: "Widget", metadata: { name: "w" } };
  const keys = ["/registry/example.org/widgets/w", "foo\n", "/registry/secrets/s"];
  const values = [JSON.stringify(object), "bar", "k8s:enc:aesgcm:v1:key1:x"];
  try {
    await database.write(
      keys.map((key, i) => {
        const revision = i + 2;
        const name = Buffer.alloc(18);
        name.set([FILE_BUCKETS.key, ...Buffer.alloc(7), revision, 0x5f]);
        const record = {
          key: fromUtf8(key),
          value: fromUtf8(values[i]),
          createRevision: revision,
          modRevision: revision,
          version: 1,
        };
        return { key: name, value: KeyValue.encode(KeyValue.create(record)) };
      }),
    );
  } finally {
    await database.close();
  }
  const documents = [
    `# rev={Revision:{Main:2 Sub:0} tombstone:false}, key "/registry/example.org/widgets/w" | created 2 | mod 2 | ver 1
apiVersion: example.org/v1
kind: Widget
metadata:
  name: w
  resourceVersion: "2"
`,
    `# rev={Revision:{Main:3 Sub:0} tombstone:false}, key "foo\\n" | created 3 | mod 3 | ver 1
# no object of Kubernetes, 3 bytes: it is neither protobuf nor JSON
`,
    `# rev={Revision:{Main:4 Sub:0} tombstone:false}, key "/registry/secrets/s" | created 4 | mod 4 | ver 1
# encrypted by aesgcm with the key "key1", 24 bytes
`,
  ].map((text) => `---\n${text}`);
  assert.equal(await dump("scan-keys", dataDir, "0", "--decode", "k8s"), documents.join(""));
  assert.equal(
    await dump("iterate-bucket", dataDir, "key", "--decode=k8s"),
    documents.toReversed().join(""),
  );
  const records = (await dump("scan-keys", file, "0")).match(/index=/g)!;
  const scanned = await dump("scan-keys", file, "0", "--decode", "k8s");
  assert.equal(scanned.match(/^# pageID=\d+, index=\d+\/\d+, rev=/gm)?.length, records.length);
  const refused = await run("dump-db", "iterate-bucket", file, "key", "--decode=yaml");
  assert.match(refused.err, /--decode is k8s, true or false/);
});

test("damage is reported with its offset and the next command; scan-keys finds the rest", async () => {
  const damaged = join(scratch, "damaged.db");
  const bytes = readFileSync(file);
  const lines = (await dump("scan-keys", file, "0")).split("\n");
  const page = Number(
    /^pageID=(\d+), index=0\//.exec(lines.find((line) => line.includes("index=0/"))!)![1],
  );
  // The page says another number.
  bytes[page * 4096] ^= 0x40;
  writeFileSync(damaged, bytes);
  const broken = await run("dump-db", "iterate-bucket", damaged, "key");
  assert.equal(broken.code, 1);
  assert.ok(
    broken.err.startsWith(
      `Error: ${damaged}: damaged at byte ${page * 4096}: page ${page} has page number `,
    ),
    broken.err,
  );
  assert.ok(broken.err.includes(`quorateutl dump-db scan-keys ${damaged} 0`), broken.err);
  const left = await run("dump-db", "scan-keys", damaged, "0");
  assert.equal(left.code, 0);
  assert.match(
    left.err,
    new RegExp(
      `^Reading page ${page} failed: its header has page number \\d+\\. Continuing\\.\\.\\.\n`,
    ),
  );
  const kept = lines.filter((line) => !line.startsWith(`pageID=${page},`));
  for (const line of kept) assert.ok(left.out.includes(line), line);
  writeFileSync(damaged, bytes.subarray(0, 100));
  for (const args of [
    ["list-bucket", damaged],
    ["scan-keys", damaged, "0"],
  ])
    assert.match((await run("dump-db", ...args)).err, /damaged at byte/);
});

test("wrong arguments are refused", async () => {
  for (const [args, code, message] of [
    [["list-bucket"], 128, "Must provide 1 argument (got [])"],
    [["iterate-bucket", file], 128, "Must provide 2 arguments (got ["],
    [
      ["iterate-bucket", file, "nosuch"],
      1,
      "got nil bucket for nosuch; the buckets are: alarm, auth,",
    ],
    [["scan-keys", file, "x"], 128, 'parsing "x": invalid syntax'],
    [["list-bucket", scratch], 1, "is neither a database file nor a data directory"],
    [["hash", join(scratch, "nosuch")], 1, "is neither a database file nor a data directory"],
  ] as const) {
    const { code: given, err } = await run("dump-db", ...args);
    assert.equal(given, code, err);
    assert.ok(err.includes(message), err);
  }
});

test("records that cannot be decoded are shown raw, and revisions, leases and marks as etcd shows them", () => {
  const text = (bucket: string, key: string, value: string): string =>
    decodedText(bucket, [Buffer.from(key, "hex"), Buffer.from(value, "hex")]);
  assert.equal(
    text("key", "00", "0a0161"),
    'key="\\x00", value="\\n\\x01a" (cannot be decoded: the key is no revision)',
  );
  assert.match(
    text("key", "00000000000000025f0000000000000000", "0aff"),
    /^key=.*\(cannot be decoded: .*\)$/,
  );
  assert.equal(
    text("lease", "4bdaa2006471201c", "08a0c48081c4d4a8ed4b10f403"),
    "lease ID=4bdaa2006471201c, TTL=500s, remaining TTL=0s",
  );
  assert.match(text("lease", "00", ""), /lease ID must be 8-byte/);
  assert.equal(
    text("auth", "617574685265766973696f6e", "0000000000000009"),
    'key="authRevision", value=9',
  );
  assert.equal(text("auth", "61757468456e61626c6564", "01"), 'key="authEnabled", value=[1]');
  assert.equal(text("meta", "7465726d", "0000000000000002"), 'key="term", value=2');
  assert.equal(text("authUsers", "61", "0a0161"), 'user="a", roles=[], option=<nil>');
  assert.equal(text("nosuch", "61", "62"), 'key="a", value="b"');
});

test("records are yielded in reverse, however small the window", async () => {
  const record = fc.tuple(
    fc.uint8Array({ minLength: 1, maxLength: 4 }),
    fc.uint8Array({ maxLength: 30 }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(record, {
        selector: ([key]) => Buffer.from(key).toString("hex"),
        maxLength: 40,
      }),
      fc.integer({ min: 1, max: 7 }),
      fc.integer({ min: 1, max: 100 }),
      async (some, sliceLength, windowBytes) => {
        const records = some.toSorted(([a], [b]) => Buffer.compare(a, b)) as BucketRecord[];
        const source: BucketSource = {
          path: "",
          kind: "level",
          bucketNames: ["b"],
          async *records(_bucket, from) {
            const start =
              from === undefined ? 0 : records.findIndex(([key]) => Buffer.compare(key, from) >= 0);
            for (let at = start; at < records.length; at += sliceLength)
              yield records.slice(at, at + sliceLength);
          },
          close: async () => {},
        };
        const given: BucketRecord[] = [];
        for await (const one of reversedRecords(source, "b", windowBytes)) given.push(one);
        assert.deepEqual(given, records.toReversed());
      },
    ),
    { seed: 20_260_105, numRuns: 200 },
  );
});
