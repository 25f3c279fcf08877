/** Objects that are encrypted before they leave the machine. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, test } from "node:test";
import { ObjectStoreError } from "@quorate/backup";
import { parseSealingKey, SealedStore } from "../node/sealed-store.ts";
import { MemoryObjects } from "./memory-objects.ts";

const KEY = new Uint8Array(32).fill(7);

async function put(store: SealedStore, name: string, bytes: Uint8Array): Promise<void> {
  async function* content() {
    for (let at = 0; at < bytes.length; at += 50_000) yield bytes.subarray(at, at + 50_000);
  }
  await store.put(name, bytes.length, content);
}

async function read(store: SealedStore, name: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of store.get(name)) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}

function isDamaged(text: RegExp): (error: unknown) => boolean {
  return (error) =>
    error instanceof ObjectStoreError && error.code === "Damaged" && text.test(error.message);
}

describe("a sealed store", () => {
  test("yields what was put, of every size around a frame, and lists its size", async () => {
    const inner = new MemoryObjects();
    const store = new SealedStore(inner, KEY);
    for (const size of [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000]) {
      const bytes = new Uint8Array(randomBytes(size));
      await put(store, "one", bytes);
      assert.deepEqual(await read(store, "one"), bytes);
      assert.deepEqual(await store.list(), [{ name: "one", sizeBytes: size }]);
      if (size > 16)
        assert.equal(Buffer.from(inner.objects.get("one")!).indexOf(bytes.subarray(0, 16)), -1);
    }
  });

  test("refuses an object that was changed, cut, extended, reordered or renamed", async () => {
    const inner = new MemoryObjects();
    const store = new SealedStore(inner, KEY);
    await put(store, "one", new Uint8Array(140_000).fill(1));
    const good = inner.objects.get("one")!;
    const frame = 65_536 + 16;
    const changes: Record<string, Uint8Array> = {
      "without its last frame": good.subarray(0, 40 + 2 * frame),
      "without its first frame": Buffer.concat([good.subarray(0, 40), good.subarray(40 + frame)]),
      "a frame twice": Buffer.concat([good.subarray(0, 40 + frame), good.subarray(40)]),
      "a byte more": Buffer.concat([good, new Uint8Array(1)]),
      "a byte less": good.subarray(0, -1),
    };
    for (const at of [8, 39, 40, 40 + frame - 1, 40 + frame, good.length - 1]) {
      const changed = good.slice();
      changed[at]! ^= 1;
      changes[`byte ${at}`] = changed;
    }
    for (const [what, bytes] of Object.entries(changes)) {
      inner.objects.set("one", new Uint8Array(bytes));
      await assert.rejects(read(store, "one"), isDamaged(/another key, or is damaged/), what);
    }
    inner.objects.set("two", good);
    await assert.rejects(read(store, "two"), isDamaged(/another key, or is damaged/));
    inner.objects.set("one", good);
    const other = new SealedStore(inner, new Uint8Array(32));
    await assert.rejects(read(other, "one"), isDamaged(/another key, or is damaged/));
    for (const plain of [new Uint8Array(0), new TextEncoder().encode("{}"), new Uint8Array(100)]) {
      inner.objects.set("one", plain);
      await assert.rejects(read(store, "one"), isDamaged(/not encrypted: leave the key out/));
    }
  });

  test("yields the same bytes at each attempt", async () => {
    const inner = new MemoryObjects();
    const attempts: Uint8Array[] = [];
    inner.put = async (_name, _size, content) => {
      for (let i = 0; i < 2; i++) {
        const chunks: Uint8Array[] = [];
        for await (const chunk of content()) chunks.push(chunk);
        attempts.push(Buffer.concat(chunks));
      }
    };
    await put(new SealedStore(inner, KEY), "one", new Uint8Array(100_000));
    assert.deepEqual(attempts[0], attempts[1]);
  });

  test("a key is 64 hexadecimal digits", () => {
    assert.deepEqual(new Uint8Array(parseSealingKey(`${"07".repeat(32)}\n`)), KEY);
    for (const text of ["", "07", "07".repeat(33), "x".repeat(64)])
      assert.throws(() => parseSealingKey(text), /64 hexadecimal digits, as of: openssl rand/);
  });
});
