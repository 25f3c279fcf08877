/**
 * Requests that hurt etcd 3.4: after one its members hold different data, after the other they all
 * panic, at every start again. Here they are refused, and nothing else happens.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  Compare_CompareResult,
  Compare_CompareTarget,
  DeleteRangeRequest,
  fromLatin1,
  KVService,
  PutRequest,
  RangeRequest,
  type RequestOp,
} from "@quorate/proto";
import { assertEqualHashes } from "../support/checks.ts";
import { type CallError, TestClient } from "../support/client.ts";
import { withCluster } from "../support/cluster.ts";

const { Put, Range, Txn, Compact } = KVService.methods;
const key = fromLatin1("k");
const value = fromLatin1("v");
const put: RequestOp = {
  request: { case: "requestPut", value: PutRequest.create({ key: fromLatin1("other"), value }) },
};

test("transactions that cannot be carried out change nothing, on any member", async () => {
  await withCluster({ size: 3 }, async (cluster) => {
    const clients = cluster.members.map(
      (member) => new TestClient(member.clientAddress, cluster.identity),
    );
    try {
      for (let index = 0; index < 5; index++) await clients[0].call(Put, { key, value });
      await clients[0].call(Compact, { revision: 5 });
      const range = (revision: number): RequestOp => ({
        request: { case: "requestRange", value: RangeRequest.create({ key, revision }) },
      });
      const remove: RequestOp = {
        request: {
          case: "requestDeleteRange",
          value: DeleteRangeRequest.create({ key: fromLatin1("j"), rangeEnd: fromLatin1("\0") }),
        },
      };
      const keep: RequestOp = {
        request: { case: "requestPut", value: PutRequest.create({ key, ignoreValue: true }) },
      };
      const refused: readonly (readonly [ops: RequestOp[], code: number, details: RegExp])[] = [
        [[put, range(2)], 11, /^etcdserver: mvcc: required revision has been compacted$/],
        [[put, range(1000)], 11, /^etcdserver: mvcc: required revision is a future revision$/],
        [[put, remove, keep], 3, /^etcdserver: key not found$/],
      ];
      // Each time as an outright list of operations, and inside a nested transaction.
      const nested = (ops: RequestOp[]): RequestOp[] => [
        { request: { case: "requestTxn", value: { compare: [], success: ops, failure: [] } } },
      ];
      for (const [ops, code, details] of refused) {
        for (const success of [ops, nested(ops)]) {
          for (const client of clients) {
            const call = client.call(Txn, { compare: [exists()], success });
            await assert.rejects(
              call,
              (error: CallError) => error.code === code && details.test(error.details),
              String(details),
            );
          }
        }
      }
      for (const client of clients) {
        const answer = await client.call(Range, { key: fromLatin1("other") });
        assert.equal(answer.count, 0);
        assert.equal(answer.header!.revision, 6);
        assert.equal((await client.call(Range, { key })).count, 1);
      }
      await assertEqualHashes(cluster);
    } finally {
      for (const client of clients) client.close();
    }
    // What a member has refused it refuses again when it replays its log.
    await Promise.all(cluster.members.map((member) => member.kill()));
    for (const member of cluster.members) member.start();
    await cluster.waitReady();
    await assertEqualHashes(cluster);
  });
});

function exists() {
  const target = Compare_CompareTarget.VERSION;
  return {
    target,
    result: Compare_CompareResult.GREATER,
    key,
    rangeEnd: new Uint8Array(),
    targetUnion: { case: "version", value: 0 },
  } as const;
}
