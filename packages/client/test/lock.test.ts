/** A lock belongs to who still has its key when its turn has come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcCode } from "@quorate/proto";
import {
  type CallOptions,
  ClientError,
  type GetOptions,
  SessionExpiredError,
  type TxnParts,
} from "../index.ts";
import type { Client } from "../src/client.ts";
import { lockNamed } from "../src/lock.ts";
import type { Session } from "../src/session.ts";

/** A client whose entry was made at revision 7, and whose key has another revision in the end. */
function clientWith(createRevision: number | undefined) {
  const header = { revision: 9 };
  const kvs = createRevision === undefined ? [] : [{ createRevision }];
  return {
    timer: { after: () => () => {} },
    txn: async () => ({ succeeded: true, header: { revision: 7 }, responses: [] }),
    get: async (_key: string, { prefix }: GetOptions) => ({ header, kvs: prefix ? [] : kvs }),
  } as unknown as Client;
}

const session = { lease: 1n } as Session;

test("whose session has expired while it waited has no lock, also where its key was made again", async () => {
  for (const createRevision of [undefined, 8])
    await assert.rejects(
      lockNamed(clientWith(createRevision), session, "jobs"),
      SessionExpiredError,
    );
  const lock = await lockNamed(clientWith(7), session, "jobs");
  assert.deepEqual([lock.entry.revision, lock.headerRevision], [7, 9]);
});

test("who cannot see whether it has the lock leaves the queue, by a call that may be sent twice", async () => {
  const made: [compared: unknown, options: CallOptions | undefined][] = [];
  const away = new ClientError(GrpcCode.Unavailable, "went away");
  const client = {
    ...clientWith(7),
    async txn({ compare }: TxnParts, options?: CallOptions) {
      made.push([compare?.[0]?.targetUnion?.value, options]);
      return { succeeded: true, header: { revision: 7 }, responses: [] };
    },
    async get(_key: string, { prefix }: GetOptions) {
      if (prefix !== true) throw away;
      return { header: { revision: 9 }, kvs: [] };
    },
  } as unknown as Client;
  await assert.rejects(lockNamed(client, session, "jobs"), away);
  assert.deepEqual(
    made.map(([compared, options]) => [compared, options?.repeat]),
    [
      [0, undefined],
      [7, true],
    ],
  );
});
