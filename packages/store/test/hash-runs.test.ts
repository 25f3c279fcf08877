/** Hashes of a store, one at a time: who shares a run, who waits, and who is refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EtcdError } from "@quorate/proto";
import { HashRuns } from "../src/mvcc/hash.ts";

/** Runs that end when the test says so. */
class Held {
  readonly begun: string[] = [];
  readonly #ends = new Map<string, PromiseWithResolvers<string>>();

  make(name: string): () => Promise<string> {
    return () => {
      this.begun.push(name);
      const end = Promise.withResolvers<string>();
      this.#ends.set(name, end);
      return end.promise;
    };
  }

  async end(name: string): Promise<void> {
    this.#ends.get(name)!.resolve(name);
    // The run is taken out, and the next one begins.
    for (let i = 0; i < 10; i++) await Promise.resolve();
  }
}

test("a hash joins the run of its key that waits, or that is current, and no other", async () => {
  const runs = new HashRuns();
  const held = new Held();
  const results = [
    runs.run("a", held.make("first"), () => false),
    // The first has begun and is not current.
    runs.run("a", held.make("second"), () => true),
    runs.run("b", held.make("other"), () => true),
    // The second waits.
    runs.run("a", held.make("joins")),
  ];
  assert.deepEqual(held.begun, ["first"]);
  await held.end("first");
  assert.deepEqual(held.begun, ["first", "second"]);
  // The second has begun, and is current.
  results.push(runs.run("a", held.make("joins too")));
  await held.end("second");
  await held.end("other");
  assert.deepEqual(await Promise.all(results), ["first", "second", "other", "second", "second"]);
  assert.deepEqual(held.begun, ["first", "second", "other"]);
  // Nothing is left of them.
  void runs.run("a", held.make("later"));
  assert.equal(held.begun.at(-1), "later");
});

test("eight hashes wait behind one, and a ninth is refused", async () => {
  const runs = new HashRuns();
  const held = new Held();
  for (let i = 0; i <= 8; i++) void runs.run(`key ${i}`, held.make(`${i}`));
  const isRefusal = (error: unknown) =>
    error instanceof EtcdError && error.code === "TooManyRequests";
  assert.throws(() => runs.run("key 9", held.make("9")), isRefusal);
  void runs.run("key 8", held.make("joins"));
  await held.end("0");
  void runs.run("key 9", held.make("9"));
  for (let i = 1; i <= 9; i++) await held.end(`${i}`);
  assert.deepEqual(held.begun, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]);
});

test("a hash that fails lets the next one begin", async () => {
  const runs = new HashRuns();
  const failed = runs.run("a", () => Promise.reject(new Error("disk")));
  const next = runs.run("b", async () => 7);
  await assert.rejects(failed, /disk/);
  assert.equal(await next, 7);
});
