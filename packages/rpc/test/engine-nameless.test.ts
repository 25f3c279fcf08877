/** Calls that do not name a host, as HTTP/2 allows. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { data } from "./engine/core.ts";
import { CALL, GrpcClient, message } from "./engine/grpc.ts";

test("without the name of a host, which a client may leave out", () => {
  const client = new GrpcClient({ unary: { "/test.Echo/Now": (bytes) => bytes } });
  const { ":authority": _, ...nameless } = CALL;
  const hello = Uint8Array.of(1, 2, 3);
  for (const id of [1, 3]) {
    client.take();
    client.send(client.headers(id, nameless), data(id, message(hello), true));
    assert.equal(client.take().length, 3);
  }
  assert.equal(client.connection.ending, false);
});
