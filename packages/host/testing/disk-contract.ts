/** The contract suite of Disk, without crashes. */
import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type Disk, DiskError, type DiskErrorCode } from "../src/disk.ts";

/** A disk with an existing, empty directory for the test. */
export interface DiskUnderTest {
  readonly disk: Disk;
  readonly root: string;
  /** Lets pending syncs end on a disk with simulated time. */
  settle?(): Promise<void>;
  cleanUp?(): void;
}

/** Asserts that `call` throws a DiskError with `code` and a path in its message. */
export function throwsDiskError(call: () => unknown, code: DiskErrorCode): void {
  assert.throws(call, (error: unknown) => {
    assert.ok(error instanceof DiskError, String(error));
    assert.equal(error.code, code, error.message);
    assert.ok(error.message.startsWith(`${error.path}: `));
    return true;
  });
}

/** As throwsDiskError, for a promise. */
export async function rejectsWithDiskError(
  promise: Promise<unknown>,
  code: DiskErrorCode,
): Promise<void> {
  const error = await promise.then(
    () => assert.fail("did not reject"),
    (reason: unknown) => reason,
  );
  throwsDiskError(() => {
    throw error;
  }, code);
}

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (content: Uint8Array) => new TextDecoder().decode(content);

/** Registers the suite. */
export function diskContract(name: string, make: () => DiskUnderTest): void {
  describe(`disk: ${name}`, () => {
    let under: DiskUnderTest;
    let disk: Disk;
    let root: string;
    const settle = (promise: Promise<void>) => Promise.all([promise, under.settle?.()]);

    beforeEach(() => {
      under = make();
      ({ disk, root } = under);
    });
    afterEach(() => under.cleanUp?.());

    it("makes directories with their parents, also if they exist", () => {
      disk.makeDir(`${root}/a/b/c`);
      disk.makeDir(`${root}/a/b/c`);
      assert.deepEqual(disk.stat(`${root}/a/b/c`)?.kind, "directory");
      assert.deepEqual(disk.list(`${root}/a`), ["b"]);
      disk.syncDir(`${root}/a`);
    });

    it("lists names in order and reports missing files", () => {
      for (const file of ["b", "a", "c"]) disk.open(`${root}/${file}`, "create").close();
      assert.deepEqual(disk.list(root), ["a", "b", "c"]);
      assert.equal(disk.stat(`${root}/none`), undefined);
      assert.equal(disk.stat(`${root}/a/below-a-file`), undefined);
      throwsDiskError(() => disk.list(`${root}/none`), "NotFound");
      throwsDiskError(() => disk.syncDir(`${root}/none`), "NotFound");
    });

    it("opens existing files for reading and writing, and creates missing ones", () => {
      const path = `${root}/f`;
      throwsDiskError(() => disk.open(path, "read"), "NotFound");
      throwsDiskError(() => disk.open(path, "write"), "NotFound");
      throwsDiskError(() => disk.readAll(path), "NotFound");
      throwsDiskError(() => disk.open(`${root}/none/f`, "create"), "NotFound");
      disk.open(path, "create").close();
      throwsDiskError(() => disk.open(path, "create"), "Exists");
      assert.deepEqual(disk.stat(path), { kind: "file", sizeBytes: 0 });
    });

    it("writes chunks one after the other at any position, and reads them back", () => {
      const file = disk.open(`${root}/f`, "create");
      file.write([bytes("hello "), bytes(""), bytes("wide "), bytes("world")], 0);
      file.write([bytes("W")], 6);
      file.write([bytes("far")], 5000);
      file.write([], 9999);
      assert.equal(file.size(), 5003);
      const target = new Uint8Array(20);
      assert.equal(file.read(target, 0), 20);
      assert.equal(text(target.subarray(0, 16)), "hello Wide world");
      assert.deepEqual([...target.subarray(16)], [0, 0, 0, 0], "a hole reads as zeros");
      assert.equal(file.read(target, 4998), 5);
      assert.equal(text(target.subarray(2, 5)), "far");
      assert.equal(file.read(target, 5003), 0);
      assert.equal(file.read(target, 99999), 0);
      file.close();
      file.close();
      const whole = disk.readAll(`${root}/f`);
      assert.equal(whole.length, 5003);
      assert.equal(
        Object.getPrototypeOf(whole),
        Uint8Array.prototype,
        "a plain array, whose slice() copies",
      );
    });

    it("writes many chunks and large ones in one call, and does not keep the bytes", () => {
      const file = disk.open(`${root}/f`, "create");
      const chunks = Array.from({ length: 3000 }, (_, i) =>
        new Uint8Array(1 + (i % 7)).fill(i % 251),
      );
      chunks.push(new Uint8Array(3 << 20).fill(9));
      const whole = Buffer.concat(chunks);
      file.write(chunks, 3);
      for (const chunk of chunks) chunk.fill(255);
      const back = new Uint8Array(whole.length);
      assert.equal(file.read(back, 3), whole.length);
      assert.ok(whole.equals(back));
      file.close();
    });

    it("does not write to a file that was opened for reading", () => {
      disk.open(`${root}/f`, "create").close();
      const file = disk.open(`${root}/f`, "read");
      assert.throws(() => file.write([bytes("x")], 0), DiskError);
      file.close();
    });

    it("truncates and extends", () => {
      const file = disk.open(`${root}/f`, "create");
      file.write([bytes("abcdef")], 0);
      file.truncate(3);
      assert.equal(file.size(), 3);
      file.truncate(10_000);
      const content = disk.readAll(`${root}/f`);
      assert.equal(content.length, 10_000);
      assert.equal(
        text(content.subarray(0, 6)),
        "abc\0\0\0",
        "what was cut off does not come back",
      );
      file.close();
    });

    it("preallocates zeros behind the content", async () => {
      const file = disk.open(`${root}/f`, "create");
      file.write([bytes("abc")], 0);
      file.preallocate(3_000_000);
      assert.equal(file.size(), 3_000_000);
      file.preallocate(5);
      assert.equal(file.size(), 3_000_000);
      await settle(file.writeZeros(2_999_990, 1_500_000));
      const content = disk.readAll(`${root}/f`);
      assert.equal(content.length, 4_499_990);
      assert.equal(text(content.subarray(0, 3)), "abc");
      assert.ok(content.subarray(3).every((byte) => byte === 0));
      file.close();
    });

    it("overwrites with zeros without blocking the event loop", async () => {
      const file = disk.open(`${root}/f`, "create");
      file.write([new Uint8Array(100).fill(1)], 0);
      await settle(file.writeZeros(10, 20));
      const content = disk.readAll(`${root}/f`);
      assert.deepEqual(
        [content[9], content[10], content[29], content[30], content.length],
        [1, 0, 0, 1, 100],
      );
      file.close();
    });

    it("syncs, one at a time per file", async () => {
      const file = disk.open(`${root}/f`, "create");
      const other = disk.open(`${root}/g`, "create");
      file.write([bytes("abc")], 0);
      const first = file.dataSync();
      assert.throws(() => file.dataSync(), /during dataSync/);
      assert.throws(() => file.close(), /during dataSync/);
      const second = other.dataSync();
      file.write([bytes("def")], 3);
      await settle(first);
      await settle(second);
      await settle(file.dataSync());
      file.dataSyncNow();
      file.close();
      other.close();
      assert.equal(text(disk.readAll(`${root}/f`)), "abcdef");
    });

    it("replaces a file atomically, and leaves no temporary file", () => {
      disk.replace(`${root}/f`, bytes("old"));
      disk.replace(`${root}/f`, bytes("new"));
      assert.equal(text(disk.readAll(`${root}/f`)), "new");
      assert.deepEqual(disk.list(root), ["f"]);
      throwsDiskError(() => disk.replace(`${root}/none/f`, bytes("x")), "NotFound");
    });

    it("renames files over files, and directories", () => {
      disk.replace(`${root}/a`, bytes("1"));
      disk.replace(`${root}/b`, bytes("2"));
      disk.rename(`${root}/a`, `${root}/b`);
      assert.deepEqual(disk.list(root), ["b"]);
      assert.equal(text(disk.readAll(`${root}/b`)), "1");
      disk.makeDir(`${root}/d`);
      disk.rename(`${root}/b`, `${root}/d/b`);
      const open = disk.open(`${root}/d/b`, "write");
      disk.rename(`${root}/d`, `${root}/e`);
      open.write([bytes("3")], 0);
      open.close();
      assert.equal(text(disk.readAll(`${root}/e/b`)), "3");
      throwsDiskError(() => disk.rename(`${root}/none`, `${root}/x`), "NotFound");
      disk.makeDir(`${root}/full/x`);
      throwsDiskError(() => disk.rename(`${root}/e`, `${root}/full`), "Exists");
    });

    it("removes files and whole directories, also if they are missing", () => {
      disk.makeDir(`${root}/a/b`);
      disk.replace(`${root}/a/b/f`, bytes("x"));
      const open = disk.open(`${root}/a/b/f`, "read");
      disk.remove(`${root}/a`);
      disk.remove(`${root}/a`);
      assert.deepEqual(disk.list(root), []);
      const target = new Uint8Array(1);
      assert.equal(open.read(target, 0), 1, "an open file outlives its name");
      open.close();
    });

    it("grants a lock to one holder at a time", () => {
      const path = `${root}/lock`;
      const lock = disk.lock(path);
      throwsDiskError(() => disk.lock(path), "Locked");
      disk.lock(`${root}/other`).release();
      throwsDiskError(() => disk.lock(path), "Locked");
      lock.release();
      const again = disk.lock(path);
      lock.release();
      throwsDiskError(() => disk.lock(path), "Locked");
      again.release();
      throwsDiskError(() => disk.lock(`${root}/none/lock`), "NotFound");
    });

    it("reports the free space", () => {
      assert.ok(disk.freeBytes(root) > 0);
      throwsDiskError(() => disk.freeBytes(`${root}/none`), "NotFound");
    });
  });
}
