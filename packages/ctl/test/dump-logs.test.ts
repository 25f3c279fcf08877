/**
 * quorateutl dump-logs. The texts in fixtures/etcd-3.7-log were compared by hand with those of
 * etcd-dump-logs on the same log, which etcd 3.7 wrote: the same but for spaces within messages,
 * which Go puts at random, and hashes of passwords, which are left out here.
 */
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runProgram } from "@quorate/cli";
import { FakeIo } from "@quorate/cli/testing";
import { ManualClock, MemoryDisk } from "@quorate/host/testing";
import { fromUtf8, InternalRaftRequest, PutRequest, WireError } from "@quorate/proto";
import { Wal } from "@quorate/wal";
import { rawLines } from "../src/dump/logs.ts";
import { LineOutput, MAX_HELD_CHARS } from "../src/dump/output.ts";
import { protoText, quoted } from "../src/dump/proto-text.ts";
import { quorateutl } from "../src/quorateutl.ts";

const fixture = join(import.meta.dirname, "fixtures/etcd-3.7-log");
const walFixtures = join(import.meta.dirname, "../../wal/test/fixtures");
const segment = "0000000000000000-0000000000000000.wal";
const scratch = mkdtempSync(join(tmpdir(), "quorate-dump-"));
after(() => rmSync(scratch, { recursive: true }));

async function dump(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const io = new FakeIo();
  const code = await runProgram(quorateutl, ["dump-logs", ...args], io);
  return { code, out: io.out, err: io.err };
}

/** The indexes of the entries that were printed. */
async function indexes(...args: string[]): Promise<number[]> {
  const { code, out, err } = await dump(...args);
  assert.equal(code, 0, err);
  return [...out.matchAll(/^ *\d+\t *(\d+)\t(?:norm|conf)\t/gm)].map((match) => Number(match[1]));
}

test("a log of etcd 3.7 with some of everything, entry by entry and raw", async () => {
  const entries = readFileSync(join(fixture, "entries.txt"), "utf8");
  assert.deepEqual(await dump(fixture), { code: 0, out: entries, err: "" });
  assert.deepEqual(await dump("--raw", fixture), {
    code: 0,
    out: readFileSync(join(fixture, "raw.txt"), "utf8"),
    err: "",
  });
  // The same from a data directory.
  mkdirSync(join(scratch, "data/member/wal"), { recursive: true });
  copyFileSync(join(fixture, segment), join(scratch, "data/member/wal", segment));
  assert.equal((await dump(join(scratch, "data"))).out, entries);
  assert.equal((await dump("--wal-dir", fixture)).out, entries);
});

test("a log of etcd 3.4, and one of Quorate over four segments, from a snapshot, an index or a snapshot file on", async () => {
  const old = join(walFixtures, "etcd-3.4.23/wal");
  assert.deepEqual(await indexes(old), [64]);
  assert.match(
    (await dump(old)).out,
    /^Snapshot:\nterm=2 index=63\nStart dumping log entries from snapshot\.\nWAL metadata:\nnodeID=9e73/,
  );
  assert.deepEqual(await indexes("--start-index=62", old), [62, 63, 64]);
  assert.deepEqual(await indexes("--start-index=60", "--end-index=62", old), [60, 61]);
  const ours = join(walFixtures, "quorate-0.1/wal");
  assert.deepEqual(
    await indexes("--start-index=1", ours),
    Array.from({ length: 62 }, (_, i) => i + 1),
  );
  assert.deepEqual(
    await indexes("--start-snap=0000000000000001-000000000000003c.snap", ours),
    [61, 62],
  );
  const named = await dump("--start-snap=latest", ours);
  assert.equal(named.code, 128);
  assert.match(
    named.err,
    /^Error: --start-snap is the name of a file in member\/snap, such as .*, and is "latest"\n$/,
  );
});

test("types can be selected; an unknown one causes a warning", async () => {
  const types = {
    IRRPut: [5, 6, 7, 10],
    IRRDeleteRange: [8],
    IRRTxn: [12],
    IRRCompaction: [13],
    IRRLeaseGrant: [9, 27],
    IRRLeaseRevoke: [11],
  };
  for (const [type, expected] of Object.entries(types))
    assert.deepEqual(await indexes(`--entry-type=${type}`, fixture), expected, type);
  assert.deepEqual(await indexes("--entry-type=IRRRange,IRRLeaseCheckpoint,Request", fixture), []);
  assert.deepEqual(await indexes("--entry-type=ConfigChange,IRRTxn", fixture), [1, 12, 24, 25]);
  const odd = await dump("--entry-type=Bogus,IRRTxn", fixture);
  assert.match(
    odd.err,
    /^\[Bogus\] is not a valid entry-type, ignored\.\nPlease set entry-type to one or more of the following:\nConfigChange, /,
  );
  assert.match(odd.out, /\nEntry types \(Bogus,IRRTxn\) count is : 1\n$/);
  assert.match(
    (await dump("--raw", "--entry-type=IRRTxn", fixture)).err,
    /are not supported with --raw/,
  );
});

test("long keys and values are cut, with their size; --max-value-bytes=0 shows them whole", async () => {
  const [disk, root] = [new MemoryDisk(), "/m"];
  disk.makeDir(root);
  const value = new Uint8Array(100_000).fill(0xff);
  const data = InternalRaftRequest.encode({
    header: { ID: 7n, username: "", authRevision: 0 },
    put: PutRequest.encode({ key: fromUtf8("k"), value }),
  });
  const text = protoText("etcdserverpb.InternalRaftRequest", data, 4);
  const cut = "<99996 of 100000 bytes not shown; --max-value-bytes=0 shows all>";
  assert.equal(text, `header:{ID:7} put:{key:"k" value:"\\xff\\xff\\xff\\xff"${cut}}`);
  const wal = Wal.create(disk, `${root}/wal`, new Uint8Array(0), { clock: new ManualClock() });
  wal.append({ term: 1, vote: 0n, commit: 1 }, [{ type: 0, term: 1, index: 1, data }]);
  await wal.close();
  const lines = (maxBytes: number) => [...rawLines(disk, `${root}/wal`, 0, maxBytes)].join("");
  assert.match(
    lines(4),
    /Data:"\\?".{4,14}"<\d+ of \d+ bytes not shown; --max-value-bytes=0 shows all> \n/,
  );
  assert.ok(lines(4).length < 1000 && lines(Number.POSITIVE_INFINITY).length > 400_000);
  // The flag's default leaves what is usual as etcd-dump-logs prints it.
  assert.doesNotMatch((await dump(fixture)).out, /not shown/);
  assert.match((await dump("--max-value-bytes=2", fixture)).out, /"<\d+ of \d+ bytes not shown/);
  assert.match((await dump("--raw", "--max-value-bytes=2", fixture)).out, /bytes not shown/);
  assert.match((await dump("--max-value-bytes=-1", fixture)).err, /must not be negative/);
});

test("entries before damage are printed, then the file, the offset and the next command", async () => {
  const dir = join(scratch, "damaged");
  mkdirSync(dir);
  const bytes = readFileSync(join(fixture, segment));
  const at = bytes.indexOf("leased");
  bytes[at] ^= 1;
  writeFileSync(join(dir, segment), bytes);
  const { code, out, err } = await dump(dir);
  assert.equal(code, 1);
  assert.match(
    out,
    /\n {3}2\t {9}9\tnorm\t.*lease_grant.*\n\nEntry types \(Normal,ConfigChange\) count is : 9\n$/,
  );
  assert.match(err, /^Error: .*damaged\/0{16}-0{16}\.wal: damaged at byte \d+: /);
  assert.match(err, /the checksum does not match\. What to do next: /);
  assert.match(err, /"quoratectl member replace [0-9a-f]+ NEW-PEER-URL"/);
  assert.match(err, /"quorateutl backup restore BACKUP .*\n$/);
  const place = Number(/at byte (\d+)/.exec(err)![1]);
  assert.ok(place <= at && at - place < 200);
  const raw = await dump("--raw", dir);
  assert.equal(raw.err, err);
  assert.match(raw.out, /Index:9 .*\nHardState: .* commit:9\n$/);
  assert.match((await dump(join(scratch, "nosuch"))).err, /nosuch is not a directory/);
});

test("a user's decoder reads each entry, and its lines are printed", async () => {
  const script = join(scratch, "decoder.cjs");
  writeFileSync(
    script,
    `require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
       const mode = process.argv[2];
       if (mode === "dies") process.exit(3);
       console.log(mode === "plain" ? "no bar" : mode === "bars" ? "OK|a|b" : "OK|" + line.length / 2 + " bytes");
     });
     if (process.argv[2] === "talks") process.stderr.write("by the way");`,
  );
  const decoded = (mode: string) =>
    dump(
      "--entry-type=IRRDeleteRange,IRRCompaction",
      `--stream-decoder=${process.execPath} ${script} ${mode}`,
      fixture,
    );
  const good = await decoded("talks");
  assert.deepEqual([good.code, good.err], [0, "decoder stderr: by the way"]);
  assert.match(good.out, /\nterm\t {5}index\ttype\tdata\tdecoder_status\tdecoded_data\n/);
  assert.match(
    good.out,
    /\t {9}8\tnorm\t.*delete_range.*\tOK\t\d+ bytes\n.*compaction.*\tOK\t\d+ bytes\n\nEntry types/,
  );
  assert.match(
    (await decoded("plain")).out,
    /\tdecoder output format is not right, print output anyway\tno bar\n/,
  );
  assert.match(
    (await decoded("bars")).out,
    /\tOK\(\*WARNING: data might contain deliminator used by etcd-dump-logs\)\tab\n/,
  );
  const dead = await decoded("dies");
  assert.equal(dead.code, 1);
  assert.match(
    dead.err,
    /^Error: the decoder ".* dies" printed no line for an entry: it ended with code 3\n$/,
  );
  const missing = await dump("--stream-decoder=/no/such/program", fixture);
  assert.match(missing.err, /printed no line for an entry: spawn \/no\/such\/program ENOENT\n$/);
});

test("messages in text: order, zeros, nesting, lists, enums, signs, unknown fields, and no passwords", () => {
  const text = (request: Partial<InternalRaftRequest>): string =>
    protoText("etcdserverpb.InternalRaftRequest", InternalRaftRequest.encode(request));
  assert.equal(text({}), "");
  assert.equal(protoText("mvccpb.KeyValue", Buffer.from("0a0161280032023031", "hex")), 'key:"a"');
  assert.equal(
    protoText("etcdserverpb.LeaseGrantRequest", Buffer.from("08ffffffffffffffffff01", "hex")),
    "TTL:-1",
  );
  assert.equal(
    protoText(
      "etcdserverpb.AuthUserChangePasswordRequest",
      Buffer.from(`0a01611203${Buffer.from("pwd").toString("hex")}`, "hex"),
    ),
    'name:"a" password:"<value removed>"',
  );
  assert.equal(
    protoText("authpb.Permission", Buffer.from("08021201616001", "hex")),
    'permType:READWRITE key:"a" 12:1',
  );
  assert.equal(
    protoText("membershippb.Attributes", Buffer.from("12017812017a", "hex")),
    'client_urls:"x" client_urls:"z"',
  );
  assert.throws(() => protoText("mvccpb.KeyValue", Buffer.from("0a05", "hex")), WireError);
  assert.throws(() => protoText("mvccpb.KeyValue", Buffer.from("07", "hex")), WireError);
  assert.equal(
    quoted(Buffer.from('a"\\\n\r\t\u0001\u007f\u0085ü€😀\ufffd', "utf8")),
    '"a\\"\\\\\\n\\r\\t\\x01\\x7f\\u0085ü€😀\ufffd"',
  );
  assert.equal(quoted(Uint8Array.of(0xff, 0x61, 0xc3)), '"\\xffa\\xc3"');
});

test("very many short lines are written in chunks", () => {
  const pieces: number[] = [];
  const out = new LineOutput({ stdout: (content) => void pieces.push(content.length) });
  for (let i = 0; i < 10_000; i++) out.write("0123456789abcdef\n");
  out.flush();
  out.flush();
  assert.equal(
    pieces.reduce((sum, one) => sum + one, 0),
    170_000,
  );
  assert.ok(pieces.length <= 3 && Math.max(...pieces) < MAX_HELD_CHARS + 17, String(pieces));
});
