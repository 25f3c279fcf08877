/** One end of the rings: whose turn it is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Link } from "../src/link.ts";
import { MAX_PIECE_BYTES, RingWriter, ringMemory } from "../src/ring.ts";

test("an end that is written to without a pause lets others have their turn", () => {
  const inbound = ringMemory();
  const writer = new RingWriter(inbound);
  const head = { kind: 1, detail: 0, call: 0, value: 0, timeMs: 0 };
  const payload = new Uint8Array(MAX_PIECE_BYTES);
  const write = (): void => {
    while (writer.write(head, payload, payload.length, true));
    writer.publish();
  };
  const turns: (() => void)[] = [];
  let received = 0;
  const link = new Link(
    { inbound, outbound: ringMemory() },
    { maxMessageBytes: MAX_PIECE_BYTES, maxQueuedBytes: 0 },
    {
      received: () => {
        received++;
        // The other thread goes on at once.
        write();
      },
      batchBegins: () => {},
      drained: () => {},
      turnEnds: () => {},
      broken: (error) => assert.fail(error),
    },
    {
      wake: () => {},
      // Of the same turn: nobody else runs before.
      atTurnsEnd: (task) => queueMicrotask(task),
      nextTurn: (task) => void turns.push(task),
    },
  );
  write();
  link.woken();
  for (let turn = 1; turn <= 10; turn++) {
    const before = received;
    assert.equal(turns.length, 1, "it goes on in the next turn");
    turns.pop()!();
    assert.ok(received > before && received - before < 64, `${received - before} in a turn`);
  }
});
