/** The state as a stream: whole, cut or flipped at every byte, and while the sender goes on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryDisk, MemoryKeyspaceOpener } from "@quorate/host/testing";
import { concat, crc32c, fromLatin1, toLatin1, writeU32BE } from "@quorate/proto";
import { Backend, Bucket } from "../src/backend/backend.ts";
import { installReceived } from "../src/backend/directories.ts";
import { STORAGE_VERSION } from "../src/backend/meta.ts";
import { receiveSnapshot } from "../src/receive.ts";
import { decodeSnapshot, encodeSnapshot } from "../src/snapshot-stream.ts";
import { Store } from "../src/store.ts";
import { Prng } from "./mvcc-history.ts";
import { addMember, applyEntry, Log, member, randomLog } from "./store-log.ts";

const DIR = "/store";

function world(): { disk: MemoryDisk; keyspaces: MemoryKeyspaceOpener } {
  const disk = new MemoryDisk();
  disk.makeDir(DIR);
  return { disk, keyspaces: new MemoryKeyspaceOpener(disk) };
}

async function storeOf(log: Log): Promise<Store> {
  const store = await Store.open(world().keyspaces, DIR);
  for (const entry of log.entries) applyEntry(store, entry);
  return store;
}

async function bytesOf(store: Store): Promise<Uint8Array> {
  const snapshot = await store.snapshot();
  const chunks: Uint8Array[] = [];
  for await (const chunk of snapshot.chunks) chunks.push(chunk);
  await snapshot.close();
  return concat(chunks);
}

/** The bytes in pieces of `sizes()` bytes each. */
async function* pieces(bytes: Uint8Array, size: () => number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + size());
    yield bytes.subarray(at, end);
    at = end;
  }
}

function smallLog(): Log {
  const log = new Log();
  log.change(addMember(member(1n)));
  log.put("a", "1");
  log.put("b", "");
  log.put("a", "2");
  return log;
}

test("what is received is the state of the sender at the position it names, and goes on from there", async () => {
  const log = randomLog(21, 200);
  const store = await storeOf(log);
  for (const size of [1, 7, 100, 1 << 20]) {
    const { disk, keyspaces } = world();
    const prng = new Prng(size);
    const snapshot = await store.snapshot();
    assert.deepEqual(snapshot.position, store.position);
    const bytes: Uint8Array[] = [];
    for await (const chunk of snapshot.chunks) bytes.push(chunk);
    await snapshot.close();
    let reported = 0;
    const chunks = pieces(concat(bytes), () => 1 + prng.below(size));
    await receiveSnapshot({ disk, keyspaces }, DIR, snapshot.position.index, chunks, (read) => {
      reported = read;
    });
    assert.equal(reported, concat(bytes).length);
    installReceived(disk, DIR, snapshot.position.index);
    const received = await Store.open(keyspaces, DIR);
    assert.deepEqual(received.position, store.position);
    assert.equal(await received.mvcc.hash(), await store.mvcc.hash());
    assert.deepEqual(received.membership.members(), store.membership.members());
    await received.close({ flush: true });
  }
  await store.close({ flush: true });
});

test("entries that are applied while it is sent are not in it", async () => {
  const log = smallLog();
  const store = await storeOf(log);
  const snapshot = await store.snapshot();
  const { index } = snapshot.position;
  const before = await store.mvcc.hash();
  const chunks = (async function* () {
    for await (const chunk of snapshot.chunks) {
      yield chunk;
      log.put("later", "x");
      store.apply(log.entries[log.entries.length - 1]);
      await store.flush();
    }
  })();
  const { disk, keyspaces } = world();
  await receiveSnapshot({ disk, keyspaces }, DIR, index, chunks);
  await snapshot.close();
  assert.ok(store.position.index > index);
  installReceived(disk, DIR, index);
  const received = await Store.open(keyspaces, DIR);
  assert.equal(received.position.index, index);
  assert.equal(await received.mvcc.hash(), before);
  for (const entry of log.entries.slice(index)) applyEntry(received, entry);
  assert.deepEqual(await received.mvcc.hashKV(0), await store.mvcc.hashKV(0));
  await received.close({ flush: true });
  await store.close({ flush: true });
});

/**
 * Receives bytes that must be refused: with an offset inside of them, and with no directory left.
 */
async function refused(bytes: Uint8Array, index: number): Promise<void> {
  const { disk, keyspaces } = world();
  await assert.rejects(
    receiveSnapshot(
      { disk, keyspaces },
      DIR,
      index,
      pieces(bytes, () => 50),
    ),
    (error: unknown) => {
      const { code, offset } = error as { code: string; offset: number };
      assert.equal(code, "BadSnapshotStream");
      assert.ok(offset >= 0 && offset <= bytes.length, `${offset}`);
      return true;
    },
  );
  assert.deepEqual(disk.list(DIR), []);
}

test("a stream that is cut at any byte is refused with its offset and leaves nothing", async () => {
  const store = await storeOf(smallLog());
  const bytes = await bytesOf(store);
  for (let length = 0; length < bytes.length; length++)
    await refused(bytes.subarray(0, length), store.position.index);
  await store.close({ flush: true });
});

test("a stream with any bit flipped is refused with its offset and leaves nothing", async () => {
  const store = await storeOf(smallLog());
  const bytes = await bytesOf(store);
  for (let at = 0; at < bytes.length; at++) {
    const flipped = bytes.slice();
    flipped[at] ^= 1 << (at % 8);
    await refused(flipped, store.position.index);
  }
  await store.close({ flush: true });
});

test("bytes after the end are refused", async () => {
  const store = await storeOf(smallLog());
  await refused(concat([await bytesOf(store), new Uint8Array(1)]), store.position.index);
  await store.close({ flush: true });
});

test("a state of another index than announced is refused", async () => {
  const store = await storeOf(smallLog());
  const bytes = await bytesOf(store);
  const { disk, keyspaces } = world();
  const { index } = store.position;
  for (const announced of [index - 1, index + 1]) {
    await assert.rejects(
      receiveSnapshot(
        { disk, keyspaces },
        DIR,
        announced,
        pieces(bytes, () => 50),
      ),
      /index/,
    );
    assert.deepEqual(disk.list(DIR), []);
  }
  await store.close({ flush: true });
});

test("a sender that fails leaves nothing, and the next try succeeds", async () => {
  const store = await storeOf(smallLog());
  const bytes = await bytesOf(store);
  const { disk, keyspaces } = world();
  const { index } = store.position;
  const failing = (async function* () {
    yield bytes.subarray(0, 60);
    throw new Error("connection lost");
  })();
  await assert.rejects(
    receiveSnapshot({ disk, keyspaces }, DIR, index, failing),
    /connection lost/,
  );
  assert.deepEqual(disk.list(DIR), []);
  await receiveSnapshot(
    { disk, keyspaces },
    DIR,
    index,
    pieces(bytes, () => 50),
  );
  assert.deepEqual(disk.list(DIR), [`db.${index}.recv`]);
  await store.close({ flush: true });
});

test("a receiver whose disk is full leaves nothing", async () => {
  const store = await storeOf(smallLog());
  const bytes = await bytesOf(store);
  const { disk, keyspaces } = world();
  keyspaces.fault = () => "NoSpace";
  await assert.rejects(
    receiveSnapshot(
      { disk, keyspaces },
      DIR,
      store.position.index,
      pieces(bytes, () => 50),
    ),
    { code: "NoSpace" },
  );
  assert.deepEqual(disk.list(DIR), []);
  await store.close({ flush: true });
});

test("large states go in many frames and many batches", async () => {
  const { keyspaces } = world();
  const sent = await keyspaces.open("/sent", { create: true });
  const value = new Uint8Array(300_000).fill(7);
  for (let i = 0; i < 40; i++) await sent.write([{ key: fromLatin1(`k${i}`), value }]);
  const received = await keyspaces.open("/received", { create: true });
  const batches: number[] = [];
  keyspaces.fault = ({ records }) => {
    batches.push(records);
    return undefined;
  };
  let frames = 0;
  const counted = (async function* () {
    for await (const chunk of encodeSnapshot(sent.scan({}))) {
      frames++;
      yield chunk;
    }
  })();
  await decodeSnapshot(counted, received);
  assert.ok(frames > 40 && batches.length >= 3, `${frames} frames, batches of ${batches}`);
  const keys: string[] = [];
  for await (const slice of received.scan({})) for (const [key] of slice) keys.push(toLatin1(key));
  assert.equal(keys.length, 40);
});

const u32 = (value: number) => {
  const bytes = new Uint8Array(4);
  writeU32BE(bytes, value, 0);
  return bytes;
};
const recordOf = (key: string, value: Uint8Array, claimed = value.length) =>
  concat([u32(key.length), u32(claimed), fromLatin1(key), value]);

/** A stream of frames as they are given, with right checksums and the right count. */
function streamOf(payloads: readonly Uint8Array[], count: number): Uint8Array {
  const frames = payloads.map((payload) => {
    const crc = u32(crc32c(0, payload));
    return { crc, bytes: concat([u32(payload.length), payload, crc]) };
  });
  const rolling = frames.reduce((sum, { crc }) => crc32c(sum, crc), 0);
  const end = concat([u32(0), u32(0), u32(count), u32(rolling)]);
  return concat([fromLatin1("QRMSNAP1"), ...frames.map(({ bytes }) => bytes), end]);
}

test("a record that does not end with its frame is refused, however right the checksums are", async () => {
  const good = recordOf("k", fromLatin1("value"));
  const { keyspaces } = world();
  const keyspace = await keyspaces.open(`${DIR}/good`, { create: true });
  const whole = streamOf([good, concat([good, good])], 3);
  assert.equal(
    await decodeSnapshot(
      pieces(whole, () => 5),
      keyspace,
    ),
    whole.length,
  );
  for (const payload of [
    concat([good, u32(1), u32(0).subarray(1)]),
    concat([good, new Uint8Array(1)]),
    recordOf("k", fromLatin1("value"), 6),
    recordOf("k", new Uint8Array(0), 0xffffffff),
  ]) {
    const bytes = streamOf([good, payload], 2);
    await assert.rejects(
      decodeSnapshot(
        pieces(bytes, () => 1 << 20),
        keyspace,
      ),
      /a record is cut short/,
    );
  }
  const tooLong = concat([fromLatin1("QRMSNAP1"), u32(2 ** 30 + 1), new Uint8Array(8)]);
  await assert.rejects(
    decodeSnapshot(
      pieces(tooLong, () => 100),
      keyspace,
    ),
    /is too long/,
  );
});

test("records are written in batches of some 4 MiB, and each is told", async () => {
  const { keyspaces } = world();
  const keyspace = await keyspaces.open(`${DIR}/batches`, { create: true });
  const sizes: number[] = [];
  const { write } = keyspace;
  keyspace.write = (batch) => {
    sizes.push([...batch].length);
    return write.call(keyspace, batch);
  };
  const mebibyte = (i: number) => recordOf(`k${i}`, new Uint8Array(1 << 20));
  const bytes = streamOf(
    Array.from({ length: 9 }, (_, i) => mebibyte(i)),
    9,
  );
  const told: number[] = [];
  await decodeSnapshot(
    pieces(bytes, () => 1 << 20),
    keyspace,
    (read) => told.push(read),
  );
  assert.deepEqual(sizes, [4, 4, 1]);
  assert.equal(told.length, 3);
  assert.deepEqual(
    [told.at(-1), told.every((one, i) => i === 0 || one > told[i - 1]!)],
    [bytes.length, true],
  );
});

test("a frame may be a gibibyte long, a record empty, and a batch exactly 4 MiB", async () => {
  const { keyspaces } = world();
  const gibibyte = concat([fromLatin1("QRMSNAP1"), u32(2 ** 30), new Uint8Array(8)]);
  const keyspace = await keyspaces.open(`${DIR}/bounds`, { create: true });
  const decode = (bytes: Uint8Array) =>
    decodeSnapshot(
      pieces(bytes, () => 1 << 20),
      keyspace,
    );
  await assert.rejects(decode(gibibyte), {
    message: `snapshot stream at offset 12: it ends ${2 ** 30 - 8} bytes before what was announced`,
  });
  const empty = streamOf([recordOf("", new Uint8Array(0))], 1);
  assert.equal(await decode(empty), empty.length);
  const sizes: number[] = [];
  const { write } = keyspace;
  keyspace.write = (batch) => {
    sizes.push([...batch].length);
    return write.call(keyspace, batch);
  };
  const mebibyte = (i: number) => recordOf(`k${i}`, new Uint8Array((1 << 20) - 10));
  await decode(
    streamOf(
      [0, 1, 2, 3, 4].map((i) => mebibyte(i)),
      5,
    ),
  );
  assert.deepEqual(sizes, [4, 1]);
});

test("a store of another term or configuration than announced is refused; what is left of another attempt goes", async () => {
  const store = await storeOf(smallLog());
  const bytes = await bytesOf(store);
  const { index, term, confState } = store.position;
  const { disk, keyspaces } = world();
  const leftover = await keyspaces.open(`${DIR}/db.${index}.tmp`, { create: true });
  await leftover.write([{ key: fromLatin1("zzz"), value: fromLatin1("of another attempt") }]);
  await leftover.close();
  let open = 0;
  const counted = {
    ...keyspaces,
    open: async (...args: Parameters<typeof keyspaces.open>) => {
      const keyspace = await keyspaces.open(...args);
      open++;
      const { close } = keyspace;
      keyspace.close = () => {
        open--;
        return close.call(keyspace);
      };
      return keyspace;
    },
  } as unknown as MemoryKeyspaceOpener;
  const receive = (announced: Parameters<typeof receiveSnapshot>[5]) =>
    receiveSnapshot(
      { disk, keyspaces: counted },
      DIR,
      index,
      pieces(bytes, () => 50),
      undefined,
      announced,
    );
  await assert.rejects(receive({ term: term + 1 }), /the state of term/);
  const other = { ...confState, voters: [...confState.voters, 9n] };
  await assert.rejects(receive({ term, confState: other }), /another configuration/);
  assert.deepEqual([open, disk.list(DIR)], [0, []]);
  await receive({ term, confState });
  assert.equal(open, 0);
  const received = await keyspaces.open(`${DIR}/db.${index}.recv`, { create: false });
  const keys: string[] = [];
  for await (const slice of received.scan({})) for (const [key] of slice) keys.push(toLatin1(key));
  assert.equal(keys.includes("zzz"), false);
  await store.close({ flush: true });
});

test("a store that a later release has written is refused", async () => {
  const { disk, keyspaces } = world();
  const keyspace = await keyspaces.open("/later", { create: true });
  const backend = new Backend(keyspace);
  const version = new Uint8Array(8);
  writeU32BE(version, STORAGE_VERSION + 1, 4);
  backend.put(Bucket.meta, fromLatin1("quorate_storage_version"), version);
  await backend.close({ flush: true });
  const later = await keyspaces.open("/later", { create: false });
  await assert.rejects(
    receiveSnapshot({ disk, keyspaces }, DIR, 1, encodeSnapshot(later.scan({}))),
    { code: "NewerRelease" },
  );
  assert.deepEqual(disk.list(DIR), []);
});
