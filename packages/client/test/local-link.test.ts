/** A call over a local link ends with its signal. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcCode } from "@quorate/proto";
import type { CallContext } from "@quorate/rpc";
import { linkClock } from "../node/engine-link.ts";
import { LocalLink } from "../node/local-link.ts";

test("an aborted call ends at once, and its handler hears of it", async () => {
  let heard: CallContext | undefined;
  const unary = new Map([
    [
      "/waits",
      (_request: Uint8Array, context: CallContext) => {
        heard = context;
        return new Promise<never>(() => {});
      },
    ],
  ]);
  const link = new LocalLink("here", { current: { unary, stream: new Map() } }, linkClock);
  const stop = new AbortController();
  const call = link.call("/waits", new Uint8Array(), { token: undefined }, 0, 60_000, stop.signal);
  const failed = assert.rejects(call, { grpcCode: GrpcCode.Canceled, sent: true });
  stop.abort();
  await failed;
  assert.equal(heard?.cancelled, true);
  link.close();
});
