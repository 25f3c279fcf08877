/** Revisions of many keys, read with few requests, and gets that need no more than those. */
import assert from "node:assert/strict";
import test from "node:test";
import { KeyRevisions, MAX_KEYS_PER_READ } from "../src/storage/key-revisions.ts";

interface Request {
  readonly keys: readonly string[];
  readonly result: PromiseWithResolvers<readonly number[]>;
}

/** A cluster whose requests the test settles, and turns that it ends. */
function world() {
  const requests: Request[] = [];
  const tasks: (() => void)[] = [];
  const client = {
    modRevisions: (keys: readonly Uint8Array[]) => {
      const result = Promise.withResolvers<readonly number[]>();
      requests.push({ keys: keys.map((key) => Buffer.from(key).toString()), result });
      return result.promise;
    },
  };
  const revisions = new KeyRevisions(client, { endOfTurn: (task) => void tasks.push(task) });
  const endTurn = () => {
    for (const task of tasks.splice(0)) task();
  };
  return { revisions, requests, endTurn };
}

test("the gets of a turn share one request, and a key is read once", async () => {
  const { revisions, requests, endTurn } = world();
  const all = ["/a", "/b", "/a"].map((key) => revisions.read(key));
  assert.equal(requests.length, 0);
  endTurn();
  assert.deepEqual(
    requests.map(({ keys }) => keys),
    [["/a", "/b"]],
  );
  requests[0].result.resolve([7, 0]);
  assert.deepEqual(await Promise.all(all), [7, 0, 7]);
});

test("a get that comes during a read waits for the next one", async () => {
  const { revisions, requests, endTurn } = world();
  const first = revisions.read("/a");
  endTurn();
  const second = revisions.read("/a");
  endTurn();
  assert.equal(requests.length, 1);
  requests[0].result.resolve([1]);
  assert.equal(await first, 1);
  endTurn();
  assert.equal(requests.length, 2);
  requests[1].result.resolve([2]);
  assert.equal(await second, 2);
});

test("a read has a bounded number of keys", async () => {
  const { revisions, requests, endTurn } = world();
  const count = 2 * MAX_KEYS_PER_READ + 1;
  const all = Array.from({ length: count }, (_, at) => revisions.read(`/${at}`));
  endTurn();
  assert.deepEqual(
    requests.map(({ keys }) => keys.length),
    [MAX_KEYS_PER_READ, MAX_KEYS_PER_READ, 1],
  );
  for (const { keys, result } of requests) result.resolve(keys.map((key) => Number(key.slice(1))));
  assert.deepEqual(
    await Promise.all(all),
    Array.from({ length: count }, (_, at) => at),
  );
  assert.equal(revisions.waiting, 0);
});

test("a failed read fails its gets, and the next one begins", async () => {
  const { revisions, requests, endTurn } = world();
  const failed = revisions.read("/a");
  endTurn();
  const next = revisions.read("/b");
  requests[0].result.reject(new Error("no leader"));
  await assert.rejects(failed, /no leader/);
  endTurn();
  requests[1].result.resolve([3]);
  assert.equal(await next, 3);
});
