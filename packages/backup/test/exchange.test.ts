/** Directories that take the places of others, interrupted at each change of the disk. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Disk } from "@quorate/host";
import { nodeDisk } from "@quorate/host/node";
import { type Exchange, exchange, finishExchange } from "../src/exchange.ts";

class Crash extends Error {}

/** A disk on which nothing happens after a number of changes. */
function crashingAfter(changes: number): Disk {
  let left = changes;
  const counted = new Set(["replace", "rename", "remove"]);
  return new Proxy(nodeDisk, {
    get(disk, name: keyof Disk) {
      const method = disk[name].bind(disk) as (...args: unknown[]) => unknown;
      if (!counted.has(name)) return method;
      return (...args: unknown[]) => {
        if (left-- === 0) throw new Crash();
        return method(...args);
      };
    },
  });
}

test("an exchange that is interrupted anywhere is finished, and says so until then", () => {
  let crashes = 0;
  for (let changes = 0; ; changes++) {
    const dir = mkdtempSync(join(tmpdir(), "quorate-exchange-"));
    try {
      const all: Exchange[] = ["member", "log"].map((name) => {
        const place = join(dir, name);
        for (const [path, text] of [
          [place, "old"],
          [`${place}.new`, "new"],
        ] as const) {
          mkdirSync(path);
          writeFileSync(join(path, "file"), text);
        }
        return { place, made: `${place}.new`, aside: `${place}.etcd` };
      });
      let isDone = false;
      try {
        exchange(crashingAfter(changes), dir, all);
        isDone = true;
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
        crashes++;
      }
      const names = readdirSync(dir);
      const hasBegun = names.includes("log.etcd") || names.includes("member.etcd");
      // Whoever finds a mixture finds the file too.
      if (hasBegun && !isDone) assert.ok(names.includes("exchange"), names.join());
      if (!finishExchange(nodeDisk, dir, all) && !isDone) exchange(nodeDisk, dir, all);
      for (const { place, aside } of all) {
        assert.equal(readFileSync(join(place, "file"), "utf8"), "new");
        assert.equal(readFileSync(join(aside, "file"), "utf8"), "old");
      }
      assert.deepEqual(readdirSync(dir), ["log", "log.etcd", "member", "member.etcd"]);
      assert.equal(finishExchange(nodeDisk, dir, all), false);
      if (isDone) break;
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  }
  assert.equal(crashes, 6, "the file, two renames for each, and the file's removal");
});
