/** Messages of a stream that arrive in one frame each: the engine delivers them without a queue. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromLatin1, toLatin1 } from "@quorate/proto";
import type { StreamCall } from "@quorate/rpc";
import { data } from "./engine/core.ts";
import { CALL, GrpcClient, message } from "./engine/grpc.ts";

const HELLO = fromLatin1("hello");

test("a stream holds nothing of messages that come whole; others keep place and bound", () => {
  const events: string[] = [];
  let call!: StreamCall;
  const client = new GrpcClient({
    limits: { maxHeldBytes: 20 },
    stream: {
      "/test.Chat/Talk": (opened) => {
        call = opened;
        return {
          message: (bytes) =>
            events.push(`message ${bytes.length > 20 ? bytes.length : toLatin1(bytes)}`),
          cancelled: () => events.push("cancelled"),
        };
      },
    },
  });
  client.send(client.headers(1, { ...CALL, ":path": "/test.Chat/Talk" }));
  const long = message(new Uint8Array(100));
  for (let i = 0; i < 3; i++) client.send(data(1, long));
  assert.deepEqual(events.splice(0), ["message 100", "message 100", "message 100"]);
  // Behind the beginning of another one, a whole one waits for it.
  client.send(data(1, message(HELLO).slice(0, 7)));
  assert.equal(client.shared.held.usedBytes, 7);
  client.send(data(1, message(HELLO).slice(7)), data(1, message(fromLatin1("you"))));
  assert.deepEqual(events.splice(0), ["message hello", "message you"]);
  // So does one that comes while the service takes none.
  call.pause();
  client.send(data(1, message(HELLO)));
  assert.deepEqual([events, client.shared.held.usedBytes], [[], 10]);
  call.resume();
  assert.deepEqual([events.splice(0), client.shared.held.usedBytes], [["message hello"], 0]);
  client.send(data(1, long.slice(0, 50)));
  assert.match(client.take().join(), /hold too much memory/);
  assert.deepEqual([events, client.shared.held.usedBytes], [["cancelled"], 0]);
});
