/** A lock belongs to who still has its key when its turn has come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { SessionExpiredError } from "../index.ts";
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
    get: async (_key: string, options?: object) => ({ header, kvs: options ? [] : kvs }),
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
