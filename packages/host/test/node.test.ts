/**
 * The implementations over Node beyond the contracts: errors of a real file system, locks between
 * processes, LevelDB's errors, logs.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { DiskError } from "@quorate/host";
import {
  formatForTerminal,
  levelKeyspaces,
  nodeDisk,
  nodeLogger,
  nodeRandom,
} from "@quorate/host/node";
import { rejectsWithDiskError, throwsDiskError } from "@quorate/host/testing";
import { endsWith } from "../../../test/support/children.ts";

let root = "";
before(() => {
  root = mkdtempSync(join(tmpdir(), "quorate-host-"));
});
after(() => rmSync(root, { recursive: true }));

/**
 * Starts a process that runs `body` with nodeDisk and stays alive; resolves when it has printed
 * "ready".
 */
async function helper(
  body: string,
): Promise<{ pid: number; stop(signal: NodeJS.Signals): Promise<void> }> {
  const script = `import { nodeDisk } from "@quorate/host/node"; ${body}; console.log("ready"); setInterval(() => {}, 1000);`;
  const args = ["--input-type=module", "-e", script];
  const child = endsWith(
    spawn(process.execPath, args, {
      cwd: import.meta.dirname,
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await Promise.race([
    new Promise<void>((resolve) => child.stdout.once("data", () => resolve())),
    exited.then(() => assert.fail("the helper ended before it was ready")),
  ]);
  return {
    pid: child.pid as number,
    async stop(signal) {
      child.kill(signal);
      await exited;
    },
  };
}

describe("nodeDisk", () => {
  it("names the file that exists in place of a directory", () => {
    const file = join(root, "in-the-way");
    writeFileSync(file, "");
    for (const path of [file, join(file, "below")])
      assert.throws(() => nodeDisk.makeDir(path), { code: "Exists", path: file });
  });

  it("fails for a directory that cannot be made although its parent exists", {
    skip: process.platform !== "linux",
  }, () => {
    throwsDiskError(() => nodeDisk.makeDir("/proc/quorate/a"), "NotFound");
  });

  it("names path, reason and errno", () => {
    const path = join(root, "none");
    assert.throws(
      () => nodeDisk.open(path, "read"),
      (error: DiskError) => {
        assert.equal(error.message, `${path}: no such file or directory (ENOENT, open)`);
        assert.equal((error.cause as NodeJS.ErrnoException).code, "ENOENT");
        return true;
      },
    );
  });

  it("makes directories and files that only their owner can read", () => {
    nodeDisk.makeDir(join(root, "private"));
    nodeDisk.replace(join(root, "private/file"), new Uint8Array(1));
    assert.equal(statSync(join(root, "private")).mode & 0o777, 0o700);
    assert.equal(statSync(join(root, "private/file")).mode & 0o777, 0o600);
  });

  it("maps a missing permission", {
    skip: process.getuid?.() === 0 && "runs as root, which ignores permissions",
  }, () => {
    const path = join(root, "forbidden");
    writeFileSync(path, "");
    chmodSync(path, 0);
    throwsDiskError(() => nodeDisk.open(path, "read"), "NotPermitted");
    throwsDiskError(() => nodeDisk.lock(path), "NotPermitted");
  });

  it("preallocates real blocks", () => {
    const path = join(root, "prealloc");
    const file = nodeDisk.open(path, "create");
    file.preallocate(2 << 20);
    file.close();
    assert.ok(statSync(path).blocks * 512 >= 2 << 20);
  });

  it("refuses a lock that another process holds, names its id, and acquires it when that is killed", async () => {
    const path = join(root, "lock");
    const child = await helper(`nodeDisk.lock(${JSON.stringify(path)})`);
    try {
      assert.throws(
        () => nodeDisk.lock(path),
        (error: DiskError) =>
          error.code === "Locked" && error.message === `${path}: held by process ${child.pid}`,
      );
    } finally {
      await child.stop("SIGKILL");
    }
    const lock = nodeDisk.lock(path);
    assert.throws(() => nodeDisk.lock(path), {
      message: `${path}: held by this process (${process.pid})`,
    });
    lock.release();
    assert.deepEqual(
      readdirSync(root).filter((name) => name.startsWith("lock")),
      ["lock"],
    );
    assert.equal(statSync(path).size, 0);
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it("ignores the id of a process that has ended", async () => {
    const path = join(root, "stale");
    const child = await helper(`nodeDisk.lock(${JSON.stringify(path)})`);
    try {
      writeFileSync(`${path}.pid`, "4194305");
      assert.throws(() => nodeDisk.lock(path), { message: `${path}: held by another process` });
      writeFileSync(`${path}.pid`, "nonsense");
      assert.throws(() => nodeDisk.lock(path), { message: `${path}: held by another process` });
    } finally {
      await child.stop("SIGTERM");
    }
  });

  it("does not lock a file with content", () => {
    const path = join(root, "content");
    writeFileSync(path, "x".repeat(200));
    assert.throws(() => nodeDisk.lock(path), {
      message: `${path}: has content, so it is not a lock file`,
    });
    assert.equal(readFileSync(path, "utf8").length, 200);
  });
});

describe("levelKeyspaces", () => {
  it("cuts a scan of tiny records by their number", async () => {
    const keyspace = await levelKeyspaces.open(join(root, "tiny"), { create: true });
    const key = (i: number) => Uint8Array.from([i >> 8, i & 0xff]);
    const value = Uint8Array.from([1]);
    await keyspace.write(Array.from({ length: 3000 }, (_, i) => ({ key: key(i), value })));
    let records = 0;
    for await (const slice of keyspace.scan({})) {
      assert.ok(slice.length <= 1024, `a slice of ${slice.length} records`);
      records += slice.length;
    }
    assert.equal(records, 3000);
    await keyspace.close();
  });

  /** A store with a table file, closed. */
  async function storeWithTable(name: string): Promise<string> {
    const path = join(root, name);
    const keyspace = await levelKeyspaces.open(path, { create: true });
    await keyspace.write(
      Array.from({ length: 2000 }, (_, i) => ({
        key: Buffer.from(`key${i}`),
        value: Buffer.alloc(100, i),
      })),
    );
    await keyspace.compact({});
    await keyspace.close();
    return path;
  }

  const damaged = (path: string) => (error: DiskError) => {
    assert.ok(error instanceof DiskError, String(error));
    assert.equal(error.code, "Damaged", error.message);
    assert.ok(error.message.startsWith(`${path}: the backend is damaged: `), error.message);
    assert.ok(
      error.message.endsWith(`; stop the member and run: quorateutl backend verify ${path}`),
      error.message,
    );
    return true;
  };

  it("builds a long batch in steps, atomically, before later batches and before close", async () => {
    const path = join(root, "long-batch");
    const keyspace = await levelKeyspaces.open(path, { create: true });
    let taken = 0;
    const batch = Array.from({ length: 100_000 }, (_, i) => ({
      key: Buffer.from(`key${i}`),
      get value() {
        taken++;
        return Buffer.from("first");
      },
    }));
    const written = keyspace.write(batch);
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(taken > 0 && taken < batch.length, `${taken} records in one turn`);
    assert.equal(keyspace.get(Buffer.from("key0")), undefined, "nothing is visible before all is");
    const after = keyspace.write([{ key: Buffer.from("key99999"), value: Buffer.from("second") }]);
    await Promise.all([keyspace.close(), written, after]);
    const again = await levelKeyspaces.open(path, { create: false });
    assert.deepEqual(
      ["key0", "key50000", "key99999"].map((key) =>
        Buffer.from(again.get(Buffer.from(key))!).toString(),
      ),
      ["first", "first", "second"],
    );
    await again.close();
  });

  it("refuses an empty directory", async () => {
    nodeDisk.makeDir(join(root, "empty"));
    await rejectsWithDiskError(
      levelKeyspaces.open(join(root, "empty"), { create: false }),
      "NotFound",
    );
  });

  it("reports a damaged manifest, with the command to run next", async () => {
    const path = await storeWithTable("manifest");
    const manifest = readdirSync(path).find((name) => name.startsWith("MANIFEST")) as string;
    const bytes = readFileSync(join(path, manifest));
    bytes[20] ^= 0xff;
    writeFileSync(join(path, manifest), bytes);
    await assert.rejects(levelKeyspaces.open(path, { create: true }), damaged(path));
  });

  it("reports a missing table", async () => {
    const path = await storeWithTable("table");
    const table = readdirSync(path).find((name) => name.endsWith(".ldb")) as string;
    renameSync(join(path, table), join(root, "taken-away"));
    await assert.rejects(levelKeyspaces.open(path, { create: false }), damaged(path));
  });

  it("reports a table with a damaged end when it is read", async () => {
    const path = await storeWithTable("footer");
    const table = join(path, readdirSync(path).find((name) => name.endsWith(".ldb")) as string);
    const bytes = readFileSync(table);
    bytes.fill(0, bytes.length - 48);
    writeFileSync(table, bytes);
    const keyspace = await levelKeyspaces.open(path, { create: false });
    assert.throws(() => keyspace.get(Buffer.from("key1")), damaged(path));
    await assert.rejects(keyspace.getMany([Buffer.from("key1")]), damaged(path));
    await assert.rejects(async () => {
      for await (const slice of keyspace.scan({})) assert.ok(slice);
    }, damaged(path));
    await keyspace.close();
  });

  it("releases space by compaction", async () => {
    const path = await storeWithTable("compact");
    const keyspace = await levelKeyspaces.open(path, { create: false });
    await keyspace.write(
      Array.from({ length: 2000 }, (_, i) => ({ key: Buffer.from(`key${i}`), value: undefined })),
    );
    const before = keyspace.sizeOnDiskBytes();
    await keyspace.compact({});
    assert.ok(keyspace.sizeOnDiskBytes() < before);
    await keyspace.close();
  });
});

describe("nodeLogger", () => {
  const lines = (path: string) => readFileSync(path, "utf8").trimEnd().split("\n");

  it("writes etcd's names in etcd's order, then the fields", () => {
    const path = join(root, "a.log");
    const logger = nodeLogger({ outputs: [path, path] });
    logger.info("root", { skipped: undefined });
    logger
      .child("raft/node", { "local-member-id": "1701f7e3861531d4" })
      .child("raft/log")
      .warn("two words", {
        "peer-urls": ["https://127.0.0.1:3380"],
        took: 1.5,
        ok: true,
      });
    logger.close();
    const [first, second, ...more] = lines(path).map((line) =>
      line.replace(/"ts":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"/, '"ts":"T"'),
    );
    assert.equal(first, '{"level":"info","ts":"T","caller":"main","msg":"root"}');
    assert.equal(
      second,
      '{"level":"warn","ts":"T","caller":"raft/log","msg":"two words","local-member-id":"1701f7e3861531d4",' +
        '"peer-urls":["https://127.0.0.1:3380"],"took":1.5,"ok":true}',
    );
    assert.deepEqual(more, [], "an output named twice is written once");
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it("drops lines below the level, which changes at run time for children too", () => {
    const path = join(root, "b.log");
    const logger = nodeLogger({ outputs: [path], level: "warn" });
    const child = logger.child("a");
    child.info("1");
    child.warn("2");
    logger.setLevel("debug");
    assert.equal(logger.level(), "debug");
    child.debug("3");
    logger.setLevel("error");
    child.warn("4");
    child.error("5");
    logger.close();
    assert.deepEqual(
      lines(path).map((line) => JSON.parse(line).msg),
      ["2", "3", "5"],
    );
  });

  it("has written every line when the call returns", () => {
    const path = join(root, "c.log");
    const logger = nodeLogger({ outputs: [path] });
    for (let i = 0; i < 100; i++) {
      logger.info("line", { i });
      assert.equal(lines(path).length, i + 1);
    }
    logger.close();
  });

  it("appends, and continues in a new file after reopen", async () => {
    const path = join(root, "d.log");
    const first = nodeLogger({ outputs: [path] });
    first.info("1");
    first.close();
    const logger = nodeLogger({ outputs: [path] });
    logger.info("2");
    renameSync(path, `${path}.old`);
    logger.info("3");
    logger.reopen();
    logger.info("4");
    logger.close();
    const messages = (file: string) => lines(file).map((line) => JSON.parse(line).msg);
    assert.deepEqual(messages(`${path}.old`), ["1", "2", "3"]);
    assert.deepEqual(messages(path), ["4"]);
  });

  it("has a terminal format on request", () => {
    const path = join(root, "e.log");
    const logger = nodeLogger({ outputs: [path], format: "console" });
    logger
      .child("server/member", { name: "infra0" })
      .info("ready to serve client requests", { "a b": "two words", n: 3, list: ["x"] });
    logger.close();
    assert.match(
      lines(path)[0],
      /^\S+Z info {3}server\/member {2}ready to serve client requests {2}name=infra0 {2}a b="two words" {2}n=3 {2}list=\["x"\]$/,
    );
    const coloured = formatForTerminal(new Date(0), "error", "", "oops", {}, true);
    assert.equal(coloured, "1970-01-01T00:00:00.000Z \x1b[31merror\x1b[39m  oops");
  });

  it("names the path that it cannot write", () => {
    assert.throws(() => nodeLogger({ outputs: [join(root, "none/x.log")] }), { code: "ENOENT" });
  });
});

it("nodeRandom differs from call to call", () => {
  assert.notEqual(nodeRandom().uint64(), nodeRandom().uint64());
});
